/* Kills the process at its n-th call that changes a file, or sends: loaded before libc by the tests that kill.
 *
 * heek_die_at(n, torn): die before the n-th such call from now on; with torn, before the n-th write
 * or pwrite only, after half of its bytes. n = 0 disarms.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long left;
static int torn;

void heek_die_at(int n, int half) {
    left = n;
    torn = half;
}

/* 1 if this call is the one. */
static int now(int is_write) {
    return left > 0 && (is_write || !torn) && --left == 0;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *bytes, size_t count) {
    REAL(ssize_t, write, int, const void *, size_t);
    if (now(1)) {
        if (torn) real(fd, bytes, count / 2);
        die();
    }
    return real(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    if (now(1)) {
        if (torn) real(fd, bytes, count / 2, at);
        die();
    }
    return real(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    if (now(1)) {
        if (torn) real(fd, bytes, count / 2, at);
        die();
    }
    return real(fd, bytes, count, at);
}

int fsync(int fd) {
    REAL(int, fsync, int);
    if (now(0)) die();
    return real(fd);
}

int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    if (now(0)) die();
    return real(fd);
}

int ftruncate(int fd, off_t size) {
    REAL(int, ftruncate, int, off_t);
    if (now(0)) die();
    return real(fd, size);
}

int ftruncate64(int fd, off64_t size) {
    REAL(int, ftruncate64, int, off64_t);
    if (now(0)) die();
    return real(fd, size);
}

int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    if (now(0)) die();
    return real(from, to);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, mkdir, const char *, mode_t);
    if (now(0)) die();
    return real(path, mode);
}

int rmdir(const char *path) {
    REAL(int, rmdir, const char *);
    if (now(0)) die();
    return real(path);
}

int unlinkat(int folder, const char *path, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    if (now(0)) die();
    return real(folder, path, flags);
}

int unlink(const char *path) {
    REAL(int, unlink, const char *);
    if (now(0)) die();
    return real(path);
}

ssize_t send(int fd, const void *bytes, size_t count, int flags) {
    REAL(ssize_t, send, int, const void *, size_t, int);
    if (now(0)) die();
    return real(fd, bytes, count, flags);
}
