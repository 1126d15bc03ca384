/*
 * Owns: one library for LD_PRELOAD: an Envoy whose supervisor dies gets SIGKILL instead of the SIGTERM that it asks the kernel for.
 * Must not: need anything but the kernel, or change another call.
 *
 * By SIGTERM an Envoy (1.38.3 to 1.40.0) tells its parent to terminate as well, from before it is LIVE until the parent has ended.
 */
#define PR_SET_PDEATHSIG 1
#define SIGKILL 9
#define SIGTERM 15

static long prctl_of_the_kernel(long option, long a, long b, long c, long d) {
#if defined(__x86_64__)
  long result = 157;
  register long fourth __asm__("r10") = c;
  register long fifth __asm__("r8") = d;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(option), "S"(a), "d"(b), "r"(fourth), "r"(fifth)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long number __asm__("x8") = 167;
  register long result __asm__("x0") = option;
  register long second __asm__("x1") = a;
  register long third __asm__("x2") = b;
  register long fourth __asm__("x3") = c;
  register long fifth __asm__("x4") = d;
  __asm__ volatile("svc 0"
                   : "+r"(result)
                   : "r"(number), "r"(second), "r"(third), "r"(fourth), "r"(fifth)
                   : "memory");
  return result;
#endif
}

__attribute__((visibility("default"))) int prctl(int option, long a, long b, long c, long d) {
  if (option == PR_SET_PDEATHSIG && a == SIGTERM) a = SIGKILL;
  long result = prctl_of_the_kernel(option, a, b, c, d);
  /* Without errno, which would be the C library's: Envoy asserts on the result alone. */
  return result < 0 ? -1 : (int)result;
}
