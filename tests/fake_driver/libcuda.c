/* The fake libcuda's devices: enough of the driver API to detect a machine that is not there.
 *
 * It honours CUDA_VISIBLE_DEVICES by index like the real one.
 */

#include "cuda.h"

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

int find(int handle, struct device *found)
{
    struct device devices[MAX_DEVICES];
    if (!initialized)
        return NOT_INITIALIZED;
    if (handle < 0 || handle >= visible_devices(devices))
        return INVALID_DEVICE;
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
        return NO_DEVICE;
    initialized = 1;
    return 0;
}

EXPORT int cuDeviceGetCount(int *count)
{
    struct device devices[MAX_DEVICES];
    MAY_FAIL(-1);
    if (!initialized)
        return NOT_INITIALIZED;
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
        return INVALID_VALUE;
    *value = attribute == 75 ? device.major : device.minor;
    return 0;
}

EXPORT int cuDeviceGetUuid(unsigned char *uuid, int handle)
{
    struct device device;
    MAY_FAIL(handle);
    int result = find(handle, &device);
    if (!result) {
        memset(uuid, 0, 16);
        uuid[15] = (unsigned char)handle;
    }
    return result;
}

/* As in the real one, an unknown number has no name. */
EXPORT int cuGetErrorName(int code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {
        {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
        {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
        {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {710, "CUDA_ERROR_ASSERT"},
    };
    *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code)
            *name = names[i].name;
    return *name ? 0 : INVALID_VALUE;
}
