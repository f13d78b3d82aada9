/* The time of day is ahead of the machine's by the seconds in a file, a double, that may change.
   With SORTIE_TEST_CLOCK_ALL all clocks are, as after a sleep of the process that no other one
   shares; so the times that are waited for are taken back before the kernel is asked. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile double *ahead;
static int all;

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("SORTIE_TEST_CLOCK");
  int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (found == MAP_FAILED) return;
  all = getenv("SORTIE_TEST_CLOCK_ALL") != NULL;
  ahead = found;
}

static int is_ahead(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      return 1;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
      return all;
    default:
      return 0;
  }
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, clock, at);
  if (!failed && ahead && is_ahead(clock)) at->tv_sec += (time_t)*ahead;
  return failed;
}

int gettimeofday(struct timeval *at, void *zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

static struct timespec of_the_machine(const struct timespec *until) {
  struct timespec at = *until;
  if (ahead && all) at.tv_sec -= (time_t)*ahead;
  return at;
}

int sem_clockwait(sem_t *what, clockid_t clock, const struct timespec *until) {
  int (*wait)(sem_t *, clockid_t, const struct timespec *) = dlsym(RTLD_NEXT, "sem_clockwait");
  struct timespec at = of_the_machine(until);
  return wait(what, clock, &at);
}

int sem_timedwait(sem_t *what, const struct timespec *until) {
  int (*wait)(sem_t *, const struct timespec *) = dlsym(RTLD_NEXT, "sem_timedwait");
  struct timespec at = of_the_machine(until);
  return wait(what, &at);
}

int pthread_cond_timedwait(pthread_cond_t *what, pthread_mutex_t *lock,
                           const struct timespec *until) {
  int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) =
      dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!wait) wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  struct timespec at = of_the_machine(until);
  return wait(what, lock, &at);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until,
                    struct timespec *left) {
  struct timespec at = (flags & TIMER_ABSTIME) && is_ahead(clock) ? of_the_machine(until) : *until;
  int (*wait)(clockid_t, int, const struct timespec *, struct timespec *) =
      dlsym(RTLD_NEXT, "clock_nanosleep");
  return wait(clock, flags, &at, left);
}
