/*
 * Owns: starting an Envoy that is nobody's child but init's (or a subreaper's), and telling when such an Envoy has ended.
 * Must not: decide, restart or signal anything but the process that it has just made.
 *
 * Envoy (1.38.3 to 1.40.0) asks for SIGTERM at the death of its parent as it comes up; so its parent must be gone before the exec.
 *
 *   epochd-launch start RECORD WORDS -- PROGRAM [ARGUMENT...]
 *       0: it runs, and RECORD says "<pid> <start> <time> <supervisor> <its start> WORDS"; 1 to 199: errno of the exec; 200 and more:
 *       see below. Start times are clock ticks since boot, the time is nanoseconds since boot.
 *   epochd-launch watch PID START
 *       Says "exit <wait status>" or "unknown" when that process has ended, "gone" where there is none. Ends with its standard input.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MISUSE = 200, NO_PROCESS = 201, NO_RECORD = 202 };

/* linux/pidfd.h of Linux 6.15, where the exit status came to it. */
struct pidfd_info {
  uint64_t mask, cgroup;
  uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
  int32_t exit_code;
};
#define EXIT_KNOWN (UINT64_C(1) << 3)
#define GET_INFO _IOWR(0xFF, 11, struct pidfd_info)

/* How long a process that has ended may stay unreaped before its status is taken for unknown. */
#define REAP_MS 2000

extern char **environ;

/* -------------------------------------------------------------------- words */

static char *put_text(char *at, const char *text) {
  size_t length = strlen(text);
  memcpy(at, text, length);
  return at + length;
}

static char *put_number(char *at, uint64_t number) {
  char digits[20];
  int count = 0;
  do digits[count++] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  while (count > 0) *at++ = digits[--count];
  return at;
}

/* Plain decimal, or 0: no process and no start has that number. */
static uint64_t number_of(const char *text) {
  uint64_t number = 0;
  if (*text == 0) return 0;
  for (; *text != 0; text++) {
    if (*text < '0' || *text > '9' || number > UINT64_MAX / 100) return 0;
    number = number * 10 + (uint64_t)(*text - '0');
  }
  return number;
}

static int write_all(int fd, const char *text, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return -1;
    text += written;
    length -= (size_t)written;
  }
  return 0;
}

/* Of a pipe whose writer sends it whole; 0 at its end. */
static ssize_t read_some(int fd, void *into, size_t length) {
  ssize_t count;
  do count = read(fd, into, length);
  while (count < 0 && errno == EINTR);
  return count;
}

/* --------------------------------------------------------------------- proc */

/* Of /proc/PID/stat, whose second field is in parentheses and may hold anything: the fields after it, or NULL. */
static char *read_stat(pid_t pid, char *buffer, size_t size) {
  char path[40];
  *put_text(put_number(put_text(path, "/proc/"), (uint64_t)pid), "/stat") = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  ssize_t count = read_some(fd, buffer, size - 1);
  close(fd);
  if (count <= 0) return NULL;
  buffer[count] = 0;
  char *close_of_name = strrchr(buffer, ')');
  return close_of_name == NULL || close_of_name[1] == 0 ? NULL : close_of_name + 2;
}

static char *field(char *fields, int number) {
  for (; number > 3; number--) {
    fields = strchr(fields, ' ');
    if (fields == NULL) return NULL;
    fields++;
  }
  char *end = fields + strcspn(fields, " \n");
  *end = 0;
  return fields;
}

static uint64_t start_of(pid_t pid) {
  char buffer[2048];
  char *fields = read_stat(pid, buffer, sizeof buffer);
  char *start = fields == NULL ? NULL : field(fields, 22);
  return start == NULL ? 0 : number_of(start);
}

/* -------------------------------------------------------------------- start */

static int record(const char *path, const char *words, pid_t pid, uint64_t start, pid_t supervisor) {
  char text[512], temporary[4096];
  if (strlen(words) > 256 || strlen(path) > sizeof temporary - 32) return -1;
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  char *at = put_text(put_number(text, (uint64_t)pid), " ");
  at = put_text(put_number(at, start), " ");
  at = put_text(put_number(at, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec), " ");
  at = put_text(put_number(at, (uint64_t)supervisor), " ");
  at = put_text(put_number(at, start_of(supervisor)), " ");
  at = put_text(put_text(at, words), "\n");
  *put_text(put_number(put_text(put_text(temporary, path), "."), (uint64_t)getpid()), ".tmp") = 0;
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  int failed = write_all(fd, text, (size_t)(at - text)) != 0;
  failed |= close(fd) != 0;
  if (!failed && rename(temporary, path) == 0) return 0;
  unlink(temporary);
  return -1;
}

static int start(const char *path, const char *words, char **argv) {
  pid_t supervisor = getppid();
  int pids[2], go[2], failure[2];
  if (pipe2(pids, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0) return NO_PROCESS;
  pid_t middle = fork();
  if (middle < 0) return NO_PROCESS;
  if (middle == 0) {
    pid_t pid = fork();
    if (pid != 0) {
      if (pid > 0) write_all(pids[1], (const char *)&pid, sizeof pid);
      _exit(0);
    }
    close(go[1]);
    setsid();
    char word;
    /* Without a word the launcher has died or given up: nobody would know of this process. */
    if (read_some(go[0], &word, 1) != 1) _exit(0);
    execve(argv[0], argv, environ);
    int why = errno;
    write_all(failure[1], (const char *)&why, sizeof why);
    _exit(127);
  }
  close(pids[1]);
  close(failure[1]);
  pid_t pid;
  if (read_some(pids[0], &pid, sizeof pid) != (ssize_t)sizeof pid) return NO_PROCESS;
  /* Once it is reaped its child has another parent: that comes before the news of a death (Linux). */
  while (waitpid(middle, NULL, 0) < 0 && errno == EINTR) {
  }
  uint64_t its_start = start_of(pid);
  if (its_start == 0) return NO_PROCESS;
  /* Before it is an Envoy: there is none that nobody has a record of. */
  if (record(path, words, pid, its_start, supervisor) != 0) return NO_RECORD;
  if (write_all(go[1], "", 1) != 0) return NO_PROCESS;
  int why;
  if (read_some(failure[0], &why, sizeof why) != (ssize_t)sizeof why) return 0;
  unlink(path);
  return why > 0 && why < MISUSE ? why : NO_PROCESS;
}

/* -------------------------------------------------------------------- watch */

static int say(const char *word) {
  return write_all(1, word, strlen(word)) == 0 ? 0 : 1;
}

static int say_status(int32_t status) {
  char text[40];
  char *at = put_number(put_text(text, "exit "), (uint64_t)(uint32_t)status);
  *put_text(at, "\n") = 0;
  return say(text);
}

/* While it is a zombie, /proc still knows (field 52): an init may take its time to reap, and kernels before 6.15 tell nowhere else. */
static int status_of_zombie(pid_t pid, uint64_t its_start, int32_t *status) {
  char buffer[2048];
  char *fields = read_stat(pid, buffer, sizeof buffer);
  if (fields == NULL || *fields != 'Z') return 0;
  char copy[2048];
  memcpy(copy, fields, sizeof buffer - (size_t)(fields - buffer));
  char *start = field(copy, 22), *code = field(fields, 52);
  if (start == NULL || code == NULL || number_of(start) != its_start) return 0;
  /* Whom /proc doesn't trust it tells 0: that is a status for the process' own user only. */
  *status = (int32_t)number_of(code);
  char path[40];
  *put_number(put_text(path, "/proc/"), (uint64_t)pid) = 0;
  struct stat owner;
  return *status != 0 || (stat(path, &owner) == 0 && owner.st_uid == geteuid());
}

static int told_status(int pidfd, int32_t *status) {
  struct pidfd_info info = {.mask = EXIT_KNOWN};
  if (ioctl(pidfd, GET_INFO, &info) != 0 || (info.mask & EXIT_KNOWN) == 0) return 0;
  *status = info.exit_code;
  return 1;
}

static int watch(pid_t pid, uint64_t its_start) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0 && errno == ESRCH) return say("gone\n");
  if (pidfd < 0) return NO_PROCESS;
  /* After the open: what is held is then either that process or not. */
  if (start_of(pid) != its_start) return say("gone\n");
  struct pollfd ends[] = {{.fd = pidfd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
  do {
    if (poll(ends, 2, -1) < 0 && errno != EINTR) return NO_PROCESS;
    if (ends[1].revents != 0) {
      char word;
      if (read_some(0, &word, 1) <= 0) return 0;
    }
  } while (ends[0].revents == 0);
  int32_t zombie = 0, status = 0;
  int is_known = status_of_zombie(pid, its_start, &zombie);
  /* Linux knows the status from when it is reaped on. */
  struct timespec pause = {.tv_nsec = 10000000};
  for (int waited = 0; waited < REAP_MS; waited += 10) {
    if (told_status(pidfd, &status)) return say_status(status);
    if (is_known) return say_status(zombie);
    if (start_of(pid) != its_start) break;
    nanosleep(&pause, NULL);
  }
  return told_status(pidfd, &status) ? say_status(status) : say("unknown\n");
}

int main(int argc, char **argv) {
  if (argc >= 6 && strcmp(argv[1], "start") == 0 && strcmp(argv[4], "--") == 0) return start(argv[2], argv[3], argv + 5);
  if (argc == 4 && strcmp(argv[1], "watch") == 0) {
    uint64_t pid = number_of(argv[2]), its_start = number_of(argv[3]);
    if (pid > 0 && pid <= INT32_MAX && its_start > 0) return watch((pid_t)pid, its_start);
  }
  static const char help[] = "epochd-launch: for epochd alone: start RECORD WORDS -- PROGRAM [ARGUMENT...] | watch PID START\n";
  write_all(2, help, sizeof help - 1);
  return MISUSE;
}
