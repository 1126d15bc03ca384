// Owns: epochd-stand-in: takes the hot restart socket of an Envoy that died while it drained and answers its successor, which
// would give up after ten seconds (1.38.3 to 1.40.0). Must not: take a name that is in use, or answer anybody else.

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// lib/stand_in/exit_codes.ts has these numbers too.
enum { TERMINATED = 0, FAILED = 1, MISUSE = 2, BOUND_OVER = 3, NAME_TAKEN = 4 };

// Envoy's own limits: a longer message comes in pieces, and no question is as long.
#define LONGEST 4096
// base_id * 10 + 2 in 32 bits.
#define MOST_BASE_ID 429496729
#define MOST_EPOCH 4294967295
#define MOST_BOUND_MS 86400000
// Less than a supervisor takes from its start to that of an Envoy.
#define LOOK_MS 50

#define HELP \
  "Usage: epochd-stand-in BASE_ID EPOCH BOUND_MS [outlive]\n" \
  "\n" \
  "Takes the hot restart socket of an Envoy's epoch that died while it drained, and answers its successor until that one\n" \
  "tells it to terminate. epochd starts it; nobody else needs to. It ends with its supervisor, or, where `outlive` is there,\n" \
  "with its successor.\n" \
  "\n" \
  "Exit codes: 0 told to terminate, 1 failed, 2 misuse, 3 BOUND_MS are over, 4 somebody has the name\n"

static struct sockaddr_un parent;
static struct sockaddr_un child;

// The statistics of nobody. Envoy takes it for whatever it asks once it has its admin: without a listen socket it binds afresh. So an
// answer too many is never taken for the wrong one.
static const unsigned char ANSWER[] = {0, 0, 0, 0, 0, 0, 0, 4, 0x12, 2, 0x1A, 0};
// To the end of the admin, where Envoy aborts by any other answer: reuse_port is the default, as with every parent.
static const unsigned char ADMIN_ENDED[] = {0, 0, 0, 0, 0, 0, 0, 6, 0x12, 4, 0x12, 2, 0x10, 1};
// didnt_recognize_your_last_message, as Envoy's own parent says to a question of a later version.
static const unsigned char NOT_KNOWN[] = {0, 0, 0, 0, 0, 0, 0, 2, 0x18, 1};

enum { PASS_LISTEN_SOCKET = 1, SHUTDOWN_ADMIN = 2, STATS = 3, DRAIN_LISTENERS = 4, TERMINATE = 5, FORWARDED_UDP_PACKET = 6 };

static int say(int file, const char *text) {
  size_t length = strlen(text);
  return write(file, text, length) == (ssize_t)length ? 0 : -1;
}

static int misuse(const char *what) {
  char line[512];
  snprintf(line, sizeof line, "error: %s\n", what);
  say(STDERR_FILENO, line);
  return MISUSE;
}

static int failed(const char *what) {
  char line[512];
  snprintf(line, sizeof line, "error: %s: %s\n", what, strerror(errno));
  say(STDERR_FILENO, line);
  return FAILED;
}

static bool parse(const char *text, uint64_t most, uint64_t *number) {
  *number = 0;
  if (*text == 0) return false;
  for (; *text != 0; text++) {
    if (*text < '0' || *text > '9') return false;
    *number = *number * 10 + (uint64_t)(*text - '0');
    if (*number > most) return false;
  }
  return true;
}

// Envoy binds the whole address: the name is padded with zeros. It has the number in 32 bits with a sign, so from 2^31 on the name has
// what that becomes in 64 bits.
static void name(struct sockaddr_un *address, const char *role, uint64_t base_id, uint64_t epoch) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  unsigned long long number = (unsigned long long)(int32_t)(uint32_t)(base_id * 10 + epoch % 3);
  snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "envoy_domain_socket_%s_%llu", role, number);
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// One protobuf field that holds the whole rest of the message: its number and where its content begins; 0 where it is anything else.
static uint32_t only_field(const unsigned char *bytes, size_t length, size_t *content) {
  if (length < 2 || (bytes[0] & 7) != 2 || (bytes[0] & 0x80) != 0) return 0;
  uint64_t size = 0;
  size_t at = 1;
  for (unsigned shift = 0;; shift += 7) {
    if (at == length || shift > 14) return 0;
    size |= (uint64_t)(bytes[at] & 0x7F) << shift;
    if ((bytes[at++] & 0x80) == 0) break;
  }
  if (length - at != size) return 0;
  *content = at;
  return bytes[0] >> 3;
}

// The number of the question; 0 where the datagram is no whole HotRestartMessage with one request.
static uint32_t question(const unsigned char *bytes, size_t length) {
  if (length < 8) return 0;
  uint64_t size = 0;
  for (int at = 0; at < 8; at++) size = size << 8 | bytes[at];
  if (size != length - 8) return 0;
  size_t request;
  size_t content;
  if (only_field(bytes + 8, length - 8, &request) != 1) return 0;
  return only_field(bytes + 8 + request, length - 8 - request, &content);
}

// Never waits: a successor that doesn't take its answers has enough of them.
static void answer(int file, const unsigned char *bytes, size_t length) {
  sendto(file, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&child, sizeof child);
}

// Whether anybody has the successor's name; nothing is sent. Whatever else goes wrong is no proof that it is gone.
static bool has_successor(void) {
  int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return true;
  bool is_gone = connect(file, (const struct sockaddr *)&child, sizeof child) != 0 && errno == ECONNREFUSED;
  close(file);
  return !is_gone;
}

// `alone`: nobody else ends it when its successor is dead, and the next Envoy may need the name.
static int serve(int file, int64_t until_ms, bool alone) {
  for (;;) {
    int64_t rest_ms = until_ms - now_ms();
    if (rest_ms <= 0 || (alone && !has_successor())) return BOUND_OVER;
    if (alone && rest_ms > LOOK_MS) rest_ms = LOOK_MS;
    struct pollfd wait = {.fd = file, .events = POLLIN};
    int ready = poll(&wait, 1, (int)rest_ms);
    if (ready < 0 && errno != EINTR) return failed("wait for a question");
    if (ready <= 0) continue;
    unsigned char bytes[LONGEST];
    struct sockaddr_un from;
    socklen_t from_length = sizeof from;
    memset(&from, 0, sizeof from);
    ssize_t length = recvfrom(file, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&from, &from_length);
    if (length < 0 && errno != EAGAIN && errno != EINTR) return failed("read a question");
    if (length <= 0 || (size_t)length > sizeof bytes) continue;
    if (from_length != sizeof child || memcmp(&from, &child, sizeof child) != 0) continue;
    switch (question(bytes, (size_t)length)) {
      case 0:
      case DRAIN_LISTENERS:
      case FORWARDED_UDP_PACKET:
        break;
      case TERMINATE:
        return TERMINATED;
      case SHUTDOWN_ADMIN:
        answer(file, ADMIN_ENDED, sizeof ADMIN_ENDED);
        break;
      case PASS_LISTEN_SOCKET:
      case STATS:
        answer(file, ANSWER, sizeof ANSWER);
        break;
      default:
        answer(file, NOT_KNOWN, sizeof NOT_KNOWN);
    }
  }
}

int main(int argc, char **argv) {
  // Whoever reads what it says may be gone, which changes nothing.
  signal(SIGPIPE, SIG_IGN);
  if (argc == 2 && strcmp(argv[1], "--help") == 0) return say(STDOUT_FILENO, HELP) == 0 ? 0 : FAILED;
  bool outlives = argc == 5 && strcmp(argv[4], "outlive") == 0;
  if (argc != 4 && !outlives) return misuse("expected BASE_ID EPOCH BOUND_MS [outlive]");
  uint64_t base_id;
  uint64_t epoch;
  uint64_t bound_ms;
  if (!parse(argv[1], MOST_BASE_ID, &base_id)) return misuse("BASE_ID: expected 0 to 429496729");
  if (!parse(argv[2], MOST_EPOCH, &epoch)) return misuse("EPOCH: expected 0 to 4294967295");
  if (!parse(argv[3], MOST_BOUND_MS, &bound_ms) || bound_ms == 0) return misuse("BOUND_MS: expected 1 to 86400000");
  // The Envoys end with their supervisor, and so does who keeps one of them alive. One that died before this is bounded all the same.
  if (!outlives && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return failed("ask for the end of the supervisor");
  int64_t until_ms = now_ms() + (int64_t)bound_ms;
  name(&parent, "parent", base_id, epoch);
  name(&child, "child", base_id, epoch + 1);
  int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return failed("make a socket");
  if (bind(file, (const struct sockaddr *)&parent, sizeof parent) != 0) {
    if (errno != EADDRINUSE) return failed("take the name");
    char line[160];
    snprintf(line, sizeof line, "error: somebody has the name %s\n", parent.sun_path + 1);
    say(STDERR_FILENO, line);
    return NAME_TAKEN;
  }
  // What the dead one was asked before its end: its successor would wait for that answer for ever.
  answer(file, ANSWER, sizeof ANSWER);
  (void)say(STDOUT_FILENO, "up\n");
  return serve(file, until_ms, outlives);
}
