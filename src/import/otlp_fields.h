/*
 * Field numbers of OpenTelemetry's profiles (opentelemetry-proto 1.11), for their reader and their writer.
 */
#ifndef WICK_IMPORT_OTLP_FIELDS_H
#define WICK_IMPORT_OTLP_FIELDS_H

enum {
    DATA_RESOURCE = 1,
    DATA_DICTIONARY = 2,
    RESOURCE_RESOURCE = 1,
    RESOURCE_SCOPES = 2,
    ATTRIBUTES = 1, /* of a resource */
    SCOPE_SCOPE = 1,
    SCOPE_PROFILE = 2,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
    PROFILE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_TIME = 3, /* fixed64 */
    PROFILE_DURATION = 4,
    PROFILE_ID = 7,
    TYPE_TYPE = 1,
    TYPE_UNIT = 2,
    SAMPLE_STACK = 1,
    SAMPLE_ATTRIBUTES = 2,
    SAMPLE_VALUES = 4,
    SAMPLE_TIMES = 5,
    TABLE_MAPPING = 1,
    TABLE_LOCATION = 2,
    TABLE_FUNCTION = 3,
    TABLE_LINK = 4,
    TABLE_STRING = 5,
    TABLE_ATTRIBUTE = 6,
    TABLE_STACK = 7,
    MAPPING_START = 1,
    MAPPING_LIMIT = 2,
    MAPPING_OFFSET = 3,
    MAPPING_FILE = 4,
    MAPPING_ATTRIBUTES = 5,
    LOCATION_MAPPING = 1,
    LOCATION_ADDRESS = 2,
    LOCATION_LINE = 3,
    LOCATION_ATTRIBUTES = 4,
    LINE_FUNCTION = 1,
    LINE_LINE = 2,
    LINE_COLUMN = 3,
    FUNCTION_NAME = 1,
    FUNCTION_SYSTEM_NAME = 2,
    FUNCTION_FILE = 3,
    FUNCTION_LINE = 4,
    LINK_TRACE = 1,
    LINK_SPAN = 2,
    STACK_LOCATIONS = 1,
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_NAME = 1, /* in a resource: the text itself */
    ATTRIBUTE_VALUE = 2,
    VALUE_STRING = 1,
    VALUE_BOOL = 2,
    VALUE_INTEGER = 3,
    VALUE_STRING_NUMBER = 8,
};

#endif
