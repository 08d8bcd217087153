/*
 * A program to profile: reads made-up orders as text, sorts them, sums them by customer and prints the ten best. The time goes
 * where one would not look first: the customers are kept in a list that is searched from its head for every order.
 * usage: orders [SECONDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ORDERS = 4000, CUSTOMERS = 700, BEST = 10 };

struct order {
    char customer[16];
    unsigned quantity, cents;
};

struct customer {
    struct customer *next;
    char name[16];
    unsigned long total;
};

static unsigned draw(unsigned *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static size_t write_orders(char *text, size_t size, unsigned seed) {
    size_t used = 0;
    for (int i = 0; i < ORDERS && used < size; i++) {
        unsigned who = draw(&seed) % CUSTOMERS;
        used += (size_t)snprintf(text + used, size - used, "customer-%u,%u,%u\n", who, 1 + draw(&seed) % 9, draw(&seed) % 10000);
    }
    return used;
}

static int parse_line(const char *line, struct order *order) {
    return sscanf(line, "%15[^,],%u,%u", order->customer, &order->quantity, &order->cents) == 3;
}

static size_t parse(const char *text, struct order *orders) {
    size_t count = 0;
    for (const char *line = text; line && *line && count < ORDERS; line = strchr(line, '\n'), line += line != NULL) {
        count += (size_t)parse_line(line, &orders[count]);
    }
    return count;
}

static int by_value(const void *a, const void *b) {
    const struct order *x = a, *y = b;
    unsigned left = x->quantity * x->cents, right = y->quantity * y->cents;
    return (left < right) - (left > right);
}

static struct customer *find(struct customer **head, const char *name) {
    for (struct customer *at = *head; at; at = at->next) {
        if (!strcmp(at->name, name)) {
            return at;
        }
    }
    struct customer *fresh = calloc(1, sizeof *fresh);
    if (!fresh) {
        abort();
    }
    memcpy(fresh->name, name, sizeof fresh->name);
    fresh->next = *head;
    return *head = fresh;
}

static struct customer *sum(const struct order *orders, size_t count) {
    struct customer *head = NULL;
    for (size_t i = 0; i < count; i++) {
        find(&head, orders[i].customer)->total += (unsigned long)orders[i].quantity * orders[i].cents;
    }
    return head;
}

static void print_best(struct customer *head, FILE *out) {
    for (int i = 0; i < BEST; i++) {
        struct customer *best = head;
        for (struct customer *at = head; at; at = at->next) {
            best = at->total > best->total ? at : best;
        }
        fprintf(out, "%-16s %10.2f\n", best->name, (double)best->total / 100);
        best->total = 0;
    }
}

static void clear(struct customer *head) {
    while (head) {
        struct customer *next = head->next;
        free(head);
        head = next;
    }
}

static void one_day(unsigned seed, char *text, size_t size, struct order *orders, FILE *out) {
    write_orders(text, size, seed);
    size_t count = parse(text, orders);
    qsort(orders, count, sizeof *orders, by_value);
    struct customer *customers = sum(orders, count);
    print_best(customers, out);
    clear(customers);
}

int main(int argc, char **argv) {
    static char text[ORDERS * 40];
    static struct order orders[ORDERS];
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    FILE *out = fopen("/dev/null", "w");
    if (!out) {
        return 1;
    }
    unsigned days = 0;
    while ((double)clock() / CLOCKS_PER_SEC < seconds) {
        one_day(++days, text, sizeof text, orders, out);
    }
    fclose(out);
    printf("%u days of orders\n", days);
    return 0;
}
