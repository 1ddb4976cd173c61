/* Preloaded into PostgreSQL and the servers, so that a test can move their clock and slow down their disk.
   The file in FAULTS_FILE holds two numbers of 64 bits: how far the clock is ahead, and how long a sync takes, in ms. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t none[2];
static const volatile int64_t *faults = none;

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("FAULTS_FILE");
  int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *shared = mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
  if (shared != MAP_FAILED) faults = shared;
  close(file);
}

static void slow(void) {
  int64_t ms = faults[1];
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  while (ms > 0 && nanosleep(&left, &left) != 0) continue;
}

int clock_gettime(clockid_t id, struct timespec *time) {
  static int (*real)(clockid_t, struct timespec *);
  if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, time);
  if (result == 0 && id == CLOCK_REALTIME) time->tv_sec += faults[0] / 1000;
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  static int (*real)(struct timeval *, void *);
  if (real == NULL) real = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
  int result = real(time, zone);
  if (result == 0) time->tv_sec += faults[0] / 1000;
  return result;
}

int fsync(int file) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  slow();
  return real(file);
}

int fdatasync(int file) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  slow();
  return real(file);
}
