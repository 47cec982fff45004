/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of common/views/view_ops.h on the model. Each returns the correct results; if
 * success is among them, *ret is the view that the operation must give. */
#ifndef PROPERTY_MODEL_OPS_H
#define PROPERTY_MODEL_OPS_H

#include "model.h"

/* The start of an operation: the list, and the description from which it was made. */
struct origin {
    const struct model *model;
    const struct view_desc *desc;
    const struct memory *memory;
};

verdict model_recast(const struct origin *of, const struct format *item, struct model *ret);
verdict model_reshape(const struct origin *of, uint32_t ndim, const int64_t *shape,
                      struct model *ret);
verdict model_slice(const struct origin *of, uint32_t dimension, int64_t start, int64_t stop,
                    int64_t step, struct model *ret);
verdict model_index(const struct origin *of, uint32_t dimension, int64_t i, struct model *ret);
verdict model_transpose(const struct origin *of, const uint32_t *axes, struct model *ret);
verdict model_broadcast(const struct origin *of, uint32_t ndim, const int64_t *shape,
                        struct model *ret);
/* item is the format of component node. */
verdict model_field(const struct origin *of, uint32_t node, const struct format *item,
                    struct model *ret);

#endif
