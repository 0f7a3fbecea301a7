/* What the two halves of the fake libcuda share: devices (libcuda.c), and work on them (libcuda_work.c). */

#ifndef CUDA_H
#define CUDA_H

#include "machine.h"

/* CUresult, with the numbers and meanings of NVIDIA's cuda.h. */
enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
};

/* The device that a handle stands for; INVALID_DEVICE or NOT_INITIALIZED where it stands for none. */
int find(int handle, struct device *found);

#endif
