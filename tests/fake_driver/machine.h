/* The machine that the fake NVIDIA driver plays: what both libraries read from the environment, at every call.
 *
 *   FAKE_NV_DRIVER   580.65.06
 *   FAKE_NV_CUDA     13.0
 *   FAKE_NV_DEVICES  name|compute capability|MiB|flags;...   flags: "mig"
 *   FAKE_NV_FAIL     call=code,...    make a call fail; call@1=code fails it for device 1 only
 *   FAKE_NV_HANG     call,...         make a call sleep until killed; call@1 likewise
 *   FAKE_NV_CRASH    call,...         make a call abort the process; call@1 likewise
 *   FAKE_NV_PRINT    call,...         make a call print to the standard streams; call@1 likewise
 *   FAKE_NV_ALLOCATE call,...         make a call take memory until there is none; call@1 likewise
 *   FAKE_NV_LOAD     what loading a library does: crash, hang, exit, abort, print, close (the standard streams),
 *                    answer (garbage to every descriptor)
 *   FAKE_NV_CUDA_OF_LIBCUDA  the version libcuda reports, where it is another one (forward compatibility)
 *   FAKE_NV_KERNEL   what becomes of a kernel: right (also where it is not set), wrong, untouched, flaky (the third of
 *                    its launches is wrong), failing (the third ends with error 719), stuck (each writes what the
 *                    first one wrote), hang, crash; wrong@1,hang@0 for single devices
 */

#ifndef MACHINE_H
#define MACHINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 32

struct device {
    char name[96];
    int major, minor;
    unsigned long long mib;
    int mig;
};

static inline const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

/* Whether the comma-separated `list` holds `call`; *code becomes the number after "=", where there is one. */
static inline int listed(const char *list, const char *call, int *code)
{
    size_t length = strlen(call);
    while (list && *list) {
        const char *end = list + strcspn(list, ",");
        if (!strncmp(list, call, length) && (list + length == end || list[length] == '=')) {
            if (code && list[length] == '=')
                *code = atoi(list + length + 1);
            return 1;
        }
        list = *end ? end + 1 : NULL;
    }
    return 0;
}

/* Whether `list` holds `call` or, for a device, call@index. */
static inline int listed_for(const char *list, const char *call, int index, int *code)
{
    char with_index[160];
    snprintf(with_index, sizeof with_index, "%s@%d", call, index);
    return listed(list, call, code) || (index >= 0 && listed(list, with_index, code));
}

static inline void print_garbage(void)
{
    static const char garbage[] = "GARBAGE \033[31m\n";
    for (int stream = 1; stream <= 2; stream++)
        if (write(stream, garbage, sizeof garbage - 1) < 0)
            return;
}

static inline void take_all_memory(void)
{
    for (;;) {
        char *part = malloc(1 << 20);
        if (!part)
            return;
        memset(part, 1, 1 << 20);
        usleep(2000);
    }
}

/* What a library does as soon as it is loaded, before any of its functions is called. */
__attribute__((constructor)) static void be_loaded(void)
{
    const char *what = setting("FAKE_NV_LOAD", "");
    if (!strcmp(what, "crash"))
        *(volatile int *)0 = 1;
    if (!strcmp(what, "hang"))
        for (;;)
            sleep(3600);
    if (!strcmp(what, "exit"))
        _exit(0);
    if (!strcmp(what, "abort"))
        abort();
    if (!strcmp(what, "print"))
        print_garbage();
    if (!strcmp(what, "close")) {
        close(1);
        close(2);
    }
    if (!strcmp(what, "answer"))
        for (int descriptor = 0; descriptor < 64; descriptor++)
            if (write(descriptor, "{}\n[1]\n", 7) < 0)
                continue;
}

/* What a call does before its work: hang, crash, print, take memory, or fail with a code. index is -1 for calls without a device. */
static inline int trouble(const char *call, int index)
{
    int code = 0;
    if (listed_for(setting("FAKE_NV_HANG", ""), call, index, NULL))
        for (;;)
            sleep(3600);
    if (listed_for(setting("FAKE_NV_CRASH", ""), call, index, NULL))
        abort();
    if (listed_for(setting("FAKE_NV_PRINT", ""), call, index, NULL))
        print_garbage();
    if (listed_for(setting("FAKE_NV_ALLOCATE", ""), call, index, NULL))
        take_all_memory();
    return listed_for(setting("FAKE_NV_FAIL", ""), call, index, &code) ? code : 0;
}

#define MAY_FAIL(index)                       \
    do {                                      \
        int code_ = trouble(__func__, index); \
        if (code_)                            \
            return code_;                     \
    } while (0)

/* "12.4" as the driver API's 12040. */
static inline int version_number(const char *text)
{
    int major = 0, minor = 0;
    sscanf(text, "%d.%d", &major, &minor);
    return major * 1000 + minor * 10;
}

static inline int all_devices(struct device *devices)
{
    int count = 0;
    const char *rest = setting("FAKE_NV_DEVICES", "");
    while (*rest && count < MAX_DEVICES) {
        char entry[256] = "", flags[64] = "";
        struct device *device = &devices[count++];
        size_t length = strcspn(rest, ";");
        snprintf(entry, sizeof entry, "%.*s", (int)length, rest);
        memset(device, 0, sizeof *device);
        sscanf(entry, "%95[^|]|%d.%d|%llu|%63s", device->name, &device->major, &device->minor, &device->mib, flags);
        device->mig = strstr(flags, "mig") != NULL;
        rest += length + (rest[length] == ';');
    }
    return count;
}

#endif
