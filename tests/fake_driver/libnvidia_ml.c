/* The fake libnvidia-ml: enough of NVML to detect a machine that is not there.
 *
 * It does not look at CUDA_VISIBLE_DEVICES, like the real one.
 */

#include "machine.h"

enum {
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    INSUFFICIENT_SIZE = 7,
};

static int initialized;
static char handles[MAX_DEVICES];

struct memory {
    unsigned long long total, free, used;
};

static int find(const char *handle, struct device *found, int *index)
{
    struct device devices[MAX_DEVICES];
    if (!initialized)
        return UNINITIALIZED;
    *index = (int)(handle - handles);
    if (!handle || *index < 0 || *index >= all_devices(devices))
        return INVALID_ARGUMENT;
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
        return INSUFFICIENT_SIZE;
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
    return initialized ? copied(version, length, setting("FAKE_NV_DRIVER", "580.65.06")) : UNINITIALIZED;
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
        return UNINITIALIZED;
    *count = (unsigned int)all_devices(devices);
    return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int wanted, const char **handle)
{
    if (wanted >= MAX_DEVICES)
        return INVALID_ARGUMENT;
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
        return NOT_SUPPORTED;
    *current = *pending = (unsigned int)device.mig;
    return 0;
}
