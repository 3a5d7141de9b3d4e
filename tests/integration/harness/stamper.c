/* A command that shows when it lived: stamper DIR ROLE [ignore | finish MILLISECONDS].
 *
 * DIR/<role>.<token>.<pid> holds two boot-clock times in nanoseconds, of its first and of its latest
 * breath, a new one every 0.2 ms. The file is mapped memory: what was stamped stays when it is
 * killed, and nothing but time passes between two stamps. "ignore": no TERM ends it. "finish": a
 * TERM makes it work on for so long, then exit 0. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t terminated;

static void on_term(int signal) {
  (void)signal;
  terminated = 1;
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const char* token = getenv("FENCING_TOKEN");
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.%s.%d", argv[1], argv[2], token ? token : "none", (int)getpid());
  int64_t finish = 0;
  if (argc > 3 && strcmp(argv[3], "ignore") == 0) signal(SIGTERM, SIG_IGN);
  if (argc > 4 && strcmp(argv[3], "finish") == 0) {
    finish = atoll(argv[4]) * 1000000;
    signal(SIGTERM, on_term);
  }
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, 16) != 0) return 66;
  volatile int64_t* stamps = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (stamps == MAP_FAILED) return 66;
  int64_t end = INT64_MAX;
  stamps[1] = stamps[0] = now();
  while (stamps[1] < end) {
    const struct timespec pause = {0, 200000};
    nanosleep(&pause, NULL);
    stamps[1] = now();
    if (terminated && end == INT64_MAX) end = stamps[1] + finish;
  }
  return 0;
}
