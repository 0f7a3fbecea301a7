/* The fake libcuda's work: contexts, memory, and one kernel, which really adds two vectors of 32-bit floats.
 *
 * Device memory is malloc'ed, and every access is checked against what was allocated. PTX is not run: it is read for its
 * target and its entry, and whatever the entry is called, it adds its first two arguments into the third. As on a GPU, a
 * kernel that goes wrong is noticed by the next call that waits for it.
 */

#include <stdint.h>

#include "cuda.h"

#define MAX_BLOCKS_OF_MEMORY 64
#define ERROR_LOG_BUFFER 5
#define ERROR_LOG_BUFFER_SIZE 6

struct context {
    int device;
    int retained;
    int hangs;
    int error; /* of a kernel; from then on every call returns it */
};

struct module {
    char entry[128];
};

struct memory {
    char *start;
    size_t size;
    int device;
};

static struct context contexts[MAX_DEVICES];
static struct context *current;
static struct memory memories[MAX_BLOCKS_OF_MEMORY];
static int launches;

/* A call that needs a context: fails as it was told to, without a context, and after a kernel went wrong. */
#define WORKS_IN_CONTEXT()                     \
    do {                                       \
        MAY_FAIL(current ? current->device : -1); \
        if (!current)                          \
            return INVALID_CONTEXT;            \
        if (current->error)                    \
            return current->error;             \
    } while (0)

/* The memory that holds `size` bytes from `pointer` on. */
static struct memory *holding(uint64_t pointer, size_t size)
{
    for (struct memory *memory = memories; memory < memories + MAX_BLOCKS_OF_MEMORY; memory++) {
        uint64_t start = (uint64_t)(uintptr_t)memory->start;
        if (memory->start && pointer >= start && size <= memory->size && pointer - start <= memory->size - size)
            return memory;
    }
    return NULL;
}

static void *at(uint64_t pointer)
{
    return (void *)(uintptr_t)pointer;
}

static int kernel_is(const char *behaviour)
{
    return listed_for(setting("FAKE_NV_KERNEL", "right"), behaviour, current->device, NULL);
}

EXPORT int cuDevicePrimaryCtxRetain(struct context **context, int handle)
{
    struct device device;
    MAY_FAIL(handle);
    int result = find(handle, &device);
    if (result)
        return result;
    *context = &contexts[handle];
    (*context)->device = handle;
    (*context)->retained++;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRelease(int handle)
{
    struct device device;
    MAY_FAIL(handle);
    int result = find(handle, &device);
    if (result)
        return result;
    if (!contexts[handle].retained)
        return INVALID_CONTEXT;
    contexts[handle].retained--;
    return 0;
}

EXPORT int cuCtxSetCurrent(struct context *context)
{
    MAY_FAIL(context ? context->device : -1);
    if (context && !context->retained)
        return INVALID_CONTEXT;
    current = context;
    return 0;
}

EXPORT int cuCtxSynchronize(void)
{
    WORKS_IN_CONTEXT();
    while (current->hangs)
        sleep(3600);
    return 0;
}

/* Put `text` into the buffer for errors that the options name. */
static void write_error_log(unsigned int count, const int *options, void **values, const char *text)
{
    char *buffer = NULL;
    size_t size = 0;
    for (unsigned int i = 0; i < count; i++) {
        if (options[i] == ERROR_LOG_BUFFER)
            buffer = values[i];
        if (options[i] == ERROR_LOG_BUFFER_SIZE)
            size = (size_t)(uintptr_t)values[i];
    }
    if (buffer && size)
        snprintf(buffer, size, "%s", text);
}

/* Read the target and the entry out of PTX. */
static int parse_ptx(const char *ptx, int *target, struct module *module)
{
    const char *directive = strstr(ptx, ".target sm_"), *entry = strstr(ptx, ".entry ");
    return directive && entry && sscanf(directive, ".target sm_%d", target) == 1
           && sscanf(entry, ".entry %127[A-Za-z0-9_]", module->entry) == 1;
}

static int load_module(struct module *module, const char *ptx)
{
    struct device device;
    int target, result = trouble("cuModuleLoadDataEx", current ? current->device : -1);
    if (result)
        return result;
    if (!current)
        return INVALID_CONTEXT;
    if (!parse_ptx(ptx, &target, module))
        return INVALID_PTX;
    result = find(current->device, &device);
    if (result)
        return result;
    return target > device.major * 10 + device.minor ? NO_BINARY_FOR_GPU : 0;
}

EXPORT int cuModuleLoadDataEx(
    struct module **module, const char *ptx, unsigned int count, const int *options, void **values)
{
    *module = calloc(1, sizeof **module);
    int result = load_module(*module, ptx);
    if (result == INVALID_PTX)
        write_error_log(count, options, values, "ptxas application ptx input, line 1; fatal : fake parsing error");
    return result;
}

EXPORT int cuModuleGetFunction(struct module **function, struct module *module, const char *name)
{
    WORKS_IN_CONTEXT();
    if (strcmp(module->entry, name))
        return NOT_FOUND;
    *function = module;
    return 0;
}

EXPORT int cuModuleUnload(struct module *module)
{
    WORKS_IN_CONTEXT();
    free(module);
    return 0;
}

EXPORT int cuMemAlloc_v2(uint64_t *pointer, size_t size)
{
    struct device device;
    struct memory *free_one = NULL;
    WORKS_IN_CONTEXT();
    int result = find(current->device, &device);
    if (result)
        return result;
    size_t left = (size_t)device.mib << 20;
    for (struct memory *memory = memories; memory < memories + MAX_BLOCKS_OF_MEMORY; memory++) {
        if (!memory->start)
            free_one = memory;
        else if (memory->device == current->device)
            left -= memory->size;
    }
    if (!size)
        return INVALID_VALUE;
    if (!free_one || size > left)
        return OUT_OF_MEMORY;
    *free_one = (struct memory){malloc(size), size, current->device};
    *pointer = (uint64_t)(uintptr_t)free_one->start;
    return 0;
}

EXPORT int cuMemFree_v2(uint64_t pointer)
{
    WORKS_IN_CONTEXT();
    struct memory *memory = holding(pointer, 0);
    if (!memory || at(pointer) != memory->start)
        return INVALID_VALUE;
    free(memory->start);
    memory->start = NULL;
    return 0;
}

EXPORT int cuMemcpyHtoD_v2(uint64_t target, const void *source, size_t size)
{
    WORKS_IN_CONTEXT();
    if (!holding(target, size))
        return INVALID_VALUE;
    memcpy(at(target), source, size);
    return 0;
}

EXPORT int cuMemcpyDtoH_v2(void *target, uint64_t source, size_t size)
{
    WORKS_IN_CONTEXT();
    if (!holding(source, size))
        return INVALID_VALUE;
    memcpy(target, at(source), size);
    return 0;
}

EXPORT int cuMemsetD8_v2(uint64_t target, unsigned char value, size_t size)
{
    WORKS_IN_CONTEXT();
    if (!holding(target, size))
        return INVALID_VALUE;
    memset(at(target), value, size);
    return 0;
}

/* Write what was written the first time. */
static void repeat_first(void *sum, size_t size)
{
    static void *first;
    if (first) {
        memcpy(sum, first, size);
    } else {
        first = malloc(size);
        memcpy(first, sum, size);
    }
}

/* The kernel: what a GPU does with the vectors, or what FAKE_NV_KERNEL makes of it. */
static void add(uint64_t left, uint64_t right, uint64_t sum, size_t count)
{
    size_t size = count * sizeof(float);
    if (!holding(left, size) || !holding(right, size) || !holding(sum, size)) {
        current->error = ILLEGAL_ADDRESS;
        return;
    }
    if (kernel_is("untouched"))
        return;
    const float *x = at(left), *y = at(right);
    float *z = at(sum);
    for (size_t i = 0; i < count; i++)
        z[i] = x[i] + y[i];
    if (kernel_is("stuck"))
        repeat_first(z, size);
    if (kernel_is("wrong") || (kernel_is("flaky") && launches == 3))
        z[count / 2] += 1;
}

EXPORT int cuLaunchKernel(struct module *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, void *stream,
    void **arguments, void **extra)
{
    (void)function, (void)shared, (void)stream, (void)extra;
    WORKS_IN_CONTEXT();
    size_t count = (size_t)grid_x * grid_y * grid_z * block_x * block_y * block_z;
    if (!count)
        return INVALID_VALUE;
    launches++;
    if (kernel_is("crash"))
        abort();
    current->hangs = kernel_is("hang");
    if (kernel_is("failing") && launches == 3)
        current->error = LAUNCH_FAILED;
    add(*(uint64_t *)arguments[0], *(uint64_t *)arguments[1], *(uint64_t *)arguments[2], count);
    return 0;
}
