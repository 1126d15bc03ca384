// Owns: epochd-probe as kubelet runs it, every 2 s in every pod: arguments in, one stat, one line out. Must not: answer
// anything otherwise than probe.ts (one table of cases holds both to the same), allocate, or copy an argument.
//
// Why C, and not the TypeScript of this folder compiled ahead of time: docs/adr/0004-probe-in-c.md.

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Made by tools/native_probe.ts from the words and numbers of the TypeScript form.
#include "words.h"

enum { READY = 0, NOT_READY = 1, MISUSE = 2 };

static struct {
  int file;
  size_t used;
  char bytes[4096];
} out;

// What can't be written is not written: the exit code is the answer.
static void flush(void) {
  size_t written = 0;
  while (written < out.used) {
    ssize_t count = write(out.file, out.bytes + written, out.used - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += (size_t)count;
  }
  out.used = 0;
}

static void begin(int file) {
  signal(SIGPIPE, SIG_IGN);
  out.file = file;
}

static void put(const char *bytes, size_t length) {
  for (size_t at = 0; at < length; at++) {
    if (out.used == sizeof out.bytes) flush();
    out.bytes[out.used++] = bytes[at];
  }
}

static void put_words(const char *words) {
  put(words, strlen(words));
}

static void put_number(int64_t number) {
  char digits[20];
  size_t at = sizeof digits;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do digits[--at] = (char)('0' + rest % 10);
  while ((rest /= 10) > 0);
  if (number < 0) put("-", 1);
  put(digits + at, sizeof digits - at);
}

// The length of the UTF-8 sequence that starts here; 0 where none does. The NUL at the end is no continuation.
static size_t sequence_at(const unsigned char *at) {
  if (at[0] < 0x80) return 1;
  if (at[0] < 0xC2 || at[0] > 0xF4) return 0;
  size_t length = at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
  unsigned char lowest = at[0] == 0xE0 ? 0xA0 : at[0] == 0xF0 ? 0x90 : 0x80;
  unsigned char highest = at[0] == 0xED ? 0x9F : at[0] == 0xF4 ? 0x8F : 0xBF;
  if (at[1] < lowest || at[1] > highest) return 0;
  for (size_t next = 2; next < length; next++) {
    if (at[next] < 0x80 || at[next] > 0xBF) return 0;
  }
  return length;
}

// An argument may hold anything, and kubelet shows the answer as an event: a run of control characters becomes a space,
// and what is not UTF-8 becomes U+FFFD, as an event must be UTF-8.
static void put_argument(const char *argument) {
  bool is_control_before = false;
  for (const unsigned char *at = (const unsigned char *)argument; *at != 0;) {
    size_t length = sequence_at(at);
    bool is_control = (length == 1 && (at[0] < 0x20 || at[0] == 0x7F)) || (length == 2 && at[0] == 0xC2 && at[1] < 0xA0);
    if (length == 0) put_words("\xEF\xBF\xBD");
    else if (!is_control) put((const char *)at, length);
    else if (!is_control_before) put(" ", 1);
    is_control_before = is_control;
    at += length == 0 ? 1 : length;
  }
}

static int end(int exit_code) {
  put("\n", 1);
  flush();
  return exit_code;
}

static int misuse(const char *before, const char *argument, const char *after) {
  begin(STDERR_FILENO);
  put_words("error: ");
  put_words(before);
  put_argument(argument);
  put_words(after);
  return end(MISUSE);
}

static bool is(const char *text, const char *wanted) {
  return strcmp(text, wanted) == 0;
}

static const char *after_digits(const char *text) {
  return text + strspn(text, "0123456789");
}

// As parseDurationMs in lib/config/duration.ts, step by step in the same doubles; false where the text is no duration.
static bool parse_duration_ms(const char *text, double *ms) {
  *ms = 0;
  if (is(text, "0")) return true;
  double total_ms = 0;
  double previous_unit_ms = INFINITY;
  do {
    const char *after = after_digits(text);
    if (after == text) return false;
    if (*after == '.') {
      const char *fraction = after + 1;
      after = after_digits(fraction);
      if (after == fraction) return false;
    }
    double amount = strtod(text, NULL);
    bool is_ms = after[0] == 'm' && after[1] == 's';
    double unit_ms = is_ms ? 1 : *after == 's' ? 1000 : *after == 'm' ? 60000 : *after == 'h' ? 3600000 : 0;
    if (unit_ms == 0 || unit_ms >= previous_unit_ms) return false;
    previous_unit_ms = unit_ms;
    total_ms += amount * unit_ms;
    text = after + (is_ms ? 2 : 1);
  } while (*text != 0);
  *ms = rint(total_ms);
  return fabs(*ms - total_ms) < 1e-6;
}

static const char *words_of(int error) {
  switch (error) {
    case EACCES: return WORDS_EACCES;
    case ENOTDIR: return WORDS_ENOTDIR;
    case ENAMETOOLONG: return WORDS_ENAMETOOLONG;
    case ELOOP: return WORDS_ELOOP;
    default: return NULL;
  }
}

// False where the time is beyond what a JavaScript date holds; rounded down, as a date is.
static bool to_unix_ms(struct timespec time, int64_t *ms) {
  const int64_t longest_s = INT64_C(8640000000000);
  if (time.tv_sec > longest_s || time.tv_sec < -longest_s) return false;
  *ms = (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
  return *ms <= longest_s * 1000;
}

static void begin_not_ready(const char *path) {
  begin(STDOUT_FILENO);
  put_words("not ready: ");
  put_argument(path);
}

static int not_ready(const char *path, const char *why) {
  begin_not_ready(path);
  put_words(why);
  return end(NOT_READY);
}

static int cannot_look(const char *path, int error) {
  begin_not_ready(path);
  put_words(" can't be looked at: ");
  const char *words = words_of(error);
  if (words != NULL) {
    put_words(words);
  } else {
    put_words("error ");
    put_number(error);
  }
  return end(NOT_READY);
}

static int judge(const char *path, double max_age_ms) {
  struct timespec now;
  struct stat info;
  int64_t now_ms = 0;
  int64_t written_ms = 0;
  clock_gettime(CLOCK_REALTIME, &now);
  if (stat(path, &info) != 0) {
    int error = errno;
    return error == ENOENT ? not_ready(path, " does not exist") : cannot_look(path, error);
  }
  if (!S_ISREG(info.st_mode)) return not_ready(path, " is not a regular file");
  if (!to_unix_ms(now, &now_ms) || !to_unix_ms(info.st_mtim, &written_ms)) {
    return not_ready(path, " has no usable time of modification");
  }
  int64_t age_ms = now_ms - written_ms;
  if (age_ms < -FUTURE_MS) {
    begin_not_ready(path);
    put_words(" is ");
    put_number(-age_ms);
    put_words(" ms from the future");
    return end(NOT_READY);
  }
  if ((double)age_ms <= max_age_ms) return READY;
  begin_not_ready(path);
  put_words(" is too old by ");
  put_number(age_ms - (int64_t)max_age_ms);
  put_words(" ms: written ");
  put_number(age_ms);
  put_words(" ms ago, expected ");
  put_number((int64_t)max_age_ms);
  put_words(" ms at most");
  return end(NOT_READY);
}

static int say(const char *words) {
  begin(STDOUT_FILENO);
  put_words(words);
  flush();
  return READY;
}

static bool is_named(const char *argument, size_t length, const char *flag) {
  return length == strlen(flag) && memcmp(argument, flag, length) == 0;
}

int main(int argc, char **argv) {
  const char *path = NULL;
  const char *max_age = NULL;
  for (int at = 1; at < argc; at++) {
    const char *argument = argv[at];
    if (is(argument, "--help") || is(argument, "-h")) return say(HELP);
    if (is(argument, "--version")) return say(VERSION);
    size_t length = strcspn(argument, "=");
    bool is_path = is_named(argument, length, "--ready-marker");
    if (!is_path && !is_named(argument, length, "--max-age")) return misuse("unknown argument ", argument, "");
    const char *flag = is_path ? "--ready-marker" : "--max-age";
    const char **value = is_path ? &path : &max_age;
    if (*value != NULL) return misuse(flag, "", " stands there twice");
    if (argument[length] == '=') *value = argument + length + 1;
    else if (++at < argc) *value = argv[at];
    if (*value == NULL || **value == 0) return misuse(flag, "", " has no value");
  }
  if (path == NULL) return misuse(PATH_MISSING, "", "");
  if (max_age == NULL) max_age = DEFAULT_MAX_AGE;
  double max_age_ms;
  if (!parse_duration_ms(max_age, &max_age_ms) || max_age_ms == 0) return misuse("--max-age ", max_age, MAX_AGE_EXPECTED);
  return judge(path, max_age_ms);
}
