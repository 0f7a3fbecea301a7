/* A fake NVIDIA driver: enough of libcuda and libnvidia-ml to detect a machine that is not there.
 *
 * Built twice, with -DFAKE_CUDA into libcuda.so.1 and with -DFAKE_NVML into libnvidia-ml.so.1. What it plays is told by
 * environment variables, read at every call:
 *
 *   FAKE_NV_DRIVER   580.65.06
 *   FAKE_NV_CUDA     13.0
 *   FAKE_NV_DEVICES  name|compute capability|MiB|flags;...   flags: "mig"
 *   FAKE_NV_FAIL     call=code,...    make a call fail; call@1=code fails it for device 1 only
 *   FAKE_NV_HANG     call,...         make a call sleep until killed
 *   FAKE_NV_CRASH    call,...         make a call abort the process
 *   FAKE_NV_CUDA_OF_LIBCUDA  the version libcuda reports, where it is another one (forward compatibility)
 *
 * The CUDA half honours CUDA_VISIBLE_DEVICES by index like the real one; NVML does not, like the real one.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 32
#define INVALID_VALUE_CUDA 1
#define INVALID_DEVICE_CUDA 101
#define NO_DEVICE_CUDA 100
#define NOT_INITIALIZED_CUDA 3
#define UNINITIALIZED_NVML 1
#define INVALID_ARGUMENT_NVML 2
#define NOT_SUPPORTED_NVML 3
#define INSUFFICIENT_SIZE_NVML 7

struct device {
    char name[96];
    int major, minor;
    unsigned long long mib;
    int mig;
};

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

/* Whether the comma-separated `list` holds `call`; *code becomes the number after "=", where there is one. */
static int listed(const char *list, const char *call, int *code)
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

/* What a call does before its work: hang, crash, or fail with a code. index is -1 for calls without a device. */
static int trouble(const char *call, int index)
{
    int code = 0;
    char with_index[160];
    if (listed(setting("FAKE_NV_HANG", ""), call, NULL))
        for (;;)
            sleep(3600);
    if (listed(setting("FAKE_NV_CRASH", ""), call, NULL))
        abort();
    if (listed(setting("FAKE_NV_FAIL", ""), call, &code))
        return code;
    snprintf(with_index, sizeof with_index, "%s@%d", call, index);
    if (index >= 0 && listed(setting("FAKE_NV_FAIL", ""), with_index, &code))
        return code;
    return 0;
}

#define MAY_FAIL(index)                       \
    do {                                      \
        int code_ = trouble(__func__, index); \
        if (code_)                            \
            return code_;                     \
    } while (0)

/* "12.4" as the driver API's 12040. */
static int version_number(const char *text)
{
    int major = 0, minor = 0;
    sscanf(text, "%d.%d", &major, &minor);
    return major * 1000 + minor * 10;
}

static int all_devices(struct device *devices)
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

#ifdef FAKE_CUDA

static int initialized;

/* The devices that CUDA_VISIBLE_DEVICES leaves, in its order; the list ends at the first entry that is no device. */
static int visible_devices(struct device *visible)
{
    struct device all[MAX_DEVICES];
    int count = all_devices(all), left = 0;
    const char *rest = getenv("CUDA_VISIBLE_DEVICES");
    if (!rest) {
        memcpy(visible, all, sizeof all);
        return count;
    }
    while (*rest && left < MAX_DEVICES) {
        char *end;
        long index = strtol(rest, &end, 10);
        if (end == rest || index < 0 || index >= count)
            break;
        visible[left++] = all[index];
        rest = end + (*end == ',');
    }
    return left;
}

static int find(int handle, struct device *found)
{
    struct device devices[MAX_DEVICES];
    if (!initialized)
        return NOT_INITIALIZED_CUDA;
    if (handle < 0 || handle >= visible_devices(devices))
        return INVALID_DEVICE_CUDA;
    *found = devices[handle];
    return 0;
}

EXPORT int cuDriverGetVersion(int *version)
{
    MAY_FAIL(-1);
    *version = version_number(setting("FAKE_NV_CUDA_OF_LIBCUDA", setting("FAKE_NV_CUDA", "13.0")));
    return 0;
}

EXPORT int cuInit(unsigned int flags)
{
    struct device devices[MAX_DEVICES];
    (void)flags;
    MAY_FAIL(-1);
    if (!visible_devices(devices))
        return NO_DEVICE_CUDA;
    initialized = 1;
    return 0;
}

EXPORT int cuDeviceGetCount(int *count)
{
    struct device devices[MAX_DEVICES];
    MAY_FAIL(-1);
    if (!initialized)
        return NOT_INITIALIZED_CUDA;
    *count = visible_devices(devices);
    return 0;
}

EXPORT int cuDeviceGet(int *handle, int index)
{
    struct device device;
    MAY_FAIL(index);
    *handle = index;
    return find(index, &device);
}

EXPORT int cuDeviceGetName(char *name, int length, int handle)
{
    struct device device;
    MAY_FAIL(handle);
    int result = find(handle, &device);
    if (!result)
        snprintf(name, (size_t)length, "%s", device.name);
    return result;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int handle)
{
    struct device device;
    MAY_FAIL(handle);
    int result = find(handle, &device);
    if (!result)
        *bytes = (size_t)device.mib << 20;
    return result;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int handle)
{
    struct device device;
    MAY_FAIL(handle);
    int result = find(handle, &device);
    if (result)
        return result;
    if (attribute != 75 && attribute != 76)
        return INVALID_VALUE_CUDA;
    *value = attribute == 75 ? device.major : device.minor;
    return 0;
}

#endif

#ifdef FAKE_NVML

static int initialized;
static char handles[MAX_DEVICES];

struct memory {
    unsigned long long total, free, used;
};

static int find(const char *handle, struct device *found, int *index)
{
    struct device devices[MAX_DEVICES];
    if (!initialized)
        return UNINITIALIZED_NVML;
    *index = (int)(handle - handles);
    if (!handle || *index < 0 || *index >= all_devices(devices))
        return INVALID_ARGUMENT_NVML;
    *found = devices[*index];
    return 0;
}

#define FIND(handle)                                \
    struct device device;                           \
    int index, missing;                             \
    if ((missing = find(handle, &device, &index)))  \
        return missing;                             \
    MAY_FAIL(index)

static int copied(char *target, unsigned int length, const char *text)
{
    if (strlen(text) >= length)
        return INSUFFICIENT_SIZE_NVML;
    strcpy(target, text);
    return 0;
}

EXPORT int nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    MAY_FAIL(-1);
    initialized = 1;
    return 0;
}

EXPORT int nvmlInit_v2(void)
{
    MAY_FAIL(-1);
    initialized = 1;
    return 0;
}

EXPORT int nvmlShutdown(void)
{
    MAY_FAIL(-1);
    initialized = 0;
    return 0;
}

EXPORT const char *nvmlErrorString(int code)
{
    static char text[64];
    snprintf(text, sizeof text, "fake NVML error %d", code);
    return text;
}

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    MAY_FAIL(-1);
    return initialized ? copied(version, length, setting("FAKE_NV_DRIVER", "580.65.06")) : UNINITIALIZED_NVML;
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version)
{
    MAY_FAIL(-1);
    *version = version_number(setting("FAKE_NV_CUDA", "13.0"));
    return 0;
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    MAY_FAIL(-1);
    *version = version_number(setting("FAKE_NV_CUDA", "13.0"));
    return 0;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *count)
{
    struct device devices[MAX_DEVICES];
    MAY_FAIL(-1);
    if (!initialized)
        return UNINITIALIZED_NVML;
    *count = (unsigned int)all_devices(devices);
    return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int wanted, const char **handle)
{
    if (wanted >= MAX_DEVICES)
        return INVALID_ARGUMENT_NVML;
    FIND(&handles[wanted]);
    *handle = &handles[wanted];
    return 0;
}

EXPORT int nvmlDeviceGetName(const char *handle, char *name, unsigned int length)
{
    FIND(handle);
    return copied(name, length, device.name);
}

EXPORT int nvmlDeviceGetUUID(const char *handle, char *uuid, unsigned int length)
{
    char text[64];
    FIND(handle);
    snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012d", index);
    return copied(uuid, length, text);
}

EXPORT int nvmlDeviceGetMemoryInfo(const char *handle, struct memory *memory)
{
    FIND(handle);
    memory->total = memory->free = device.mib << 20;
    memory->used = 0;
    return 0;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(const char *handle, int *major, int *minor)
{
    FIND(handle);
    *major = device.major;
    *minor = device.minor;
    return 0;
}

EXPORT int nvmlDeviceGetMigMode(const char *handle, unsigned int *current, unsigned int *pending)
{
    FIND(handle);
    if (device.major < 8)
        return NOT_SUPPORTED_NVML;
    *current = *pending = (unsigned int)device.mig;
    return 0;
}

#endif
