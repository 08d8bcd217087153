/* Private to the room: XML as a stream of tags. No tree, no recursion; all texts point into the content. */
#ifndef WICK_IMPORT_XML_H
#define WICK_IMPORT_XML_H

#include "base/base.h"

struct xml {
    struct text name;
    struct text attributes;
    bool end;   /* </name> */
    bool empty; /* <name/> */
};

/* Get the next tag and move *rest after it; skip text before it, comments, CDATA and declarations. Return false at
   the end. */
bool xml_next(struct text *rest, struct xml *tag);
/* Return the raw value, still escaped. */
bool xml_attribute(struct text attributes, struct text key, struct text *value);
/* Return false for an entity that is not one of XML's own. */
bool xml_add_unescaped(struct buffer *out, struct text t);

#endif
