// Owns: starting one command again and again and measuring each run, in a process so small that its own size and speed
// don't show in the figures (Deno's start of a child costs more than the probe). Must not: judge the figures.
//
// spawn RUNS COMMAND [ARGUMENT]...: one line a run: wall ns, CPU us, largest resident size in KiB, exit code.

#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int stream = 0; stream < 3; stream++) {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  }
  for (long runs = strtol(argv[1], NULL, 10); runs > 0; runs--) {
    pid_t pid;
    int status;
    struct rusage usage;
    int64_t start_ns = now_ns();
    if (posix_spawn(&pid, argv[2], &actions, NULL, argv + 2, environ) != 0) return 1;
    if (wait4(pid, &status, 0, &usage) != pid) return 1;
    int64_t wall_ns = now_ns() - start_ns;
    int64_t cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000) + usage.ru_utime.tv_usec +
                     usage.ru_stime.tv_usec;
    printf("%lld %lld %ld %d\n", (long long)wall_ns, (long long)cpu_us, usage.ru_maxrss,
           WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return 0;
}
