// Calls in known numbers: a file that is opened again for each record, failed look-ups, a thread, a child, signals.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void save(const char *path, int record) {
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    lseek(file, 0, SEEK_END);
    if (write(file, &record, sizeof record) != sizeof record) _exit(3);
    close(file);
}

__attribute__((noinline)) static void look(int number) {
    char path[64];
    struct stat found;
    snprintf(path, sizeof path, "missing-%d", number);
    stat(path, &found);
}

static void *ask(void *unused) {
    for (int call = 0; call < 5000; call++) syscall(SYS_getppid);
    return unused;
}

static void handle(int signal) { (void)signal; }

int main(void) {
    for (int record = 0; record < 2000; record++) save("records", record);
    for (int number = 0; number < 10; number++) look(number);
    signal(SIGUSR1, handle);
    for (int number = 0; number < 300; number++) raise(SIGUSR1);
    pthread_t thread;
    pthread_create(&thread, NULL, ask, NULL);
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        ask(NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
}
