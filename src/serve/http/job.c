/* Requests that need a child: a short queue, and threads that handle them while their connections are suspended. */
#include <stdlib.h>

#include "serve/http/server.h"

struct jobs {
    struct server *server;
    pthread_mutex_t lock;
    pthread_cond_t added;
    struct job *first, *last;
    size_t count;
    bool ending;
    pthread_t threads[JOBS];
    size_t thread_count;
};

static void *work(void *context) {
    struct jobs *jobs = context;
    pthread_mutex_lock(&jobs->lock);
    while (true) {
        while (!jobs->first && !jobs->ending)
            pthread_cond_wait(&jobs->added, &jobs->lock);
        struct job *job = jobs->first;
        if (!job)
            break;
        jobs->first = job->next;
        jobs->count--;
        pthread_mutex_unlock(&jobs->lock);
        if (jobs->server->ending)
            job->status = 503;
        else
            job->work(jobs->server, job);
        job->done = true;
        MHD_resume_connection(job->connection);
        pthread_mutex_lock(&jobs->lock);
    }
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

struct jobs *jobs_new(struct server *server) {
    struct jobs *jobs = memory_zero(1, sizeof *jobs);
    jobs->server = server;
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->added, NULL);
    while (jobs->thread_count < JOBS &&
           pthread_create(&jobs->threads[jobs->thread_count], NULL, work, jobs) == 0)
        jobs->thread_count++;
    return jobs;
}

bool jobs_add(struct jobs *jobs, struct job *job) {
    pthread_mutex_lock(&jobs->lock);
    bool fits = jobs->count < QUEUE && jobs->thread_count && !jobs->ending;
    if (fits) {
        MHD_suspend_connection(job->connection);
        job->next = NULL;
        if (jobs->first)
            jobs->last->next = job;
        else
            jobs->first = job;
        jobs->last = job;
        jobs->count++;
        pthread_cond_signal(&jobs->added);
    }
    pthread_mutex_unlock(&jobs->lock);
    return fits;
}

void jobs_free(struct jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    jobs->ending = true;
    pthread_cond_broadcast(&jobs->added);
    pthread_mutex_unlock(&jobs->lock);
    for (size_t i = 0; i < jobs->thread_count; i++)
        pthread_join(jobs->threads[i], NULL);
    pthread_mutex_destroy(&jobs->lock);
    pthread_cond_destroy(&jobs->added);
    free(jobs);
}

void job_free(struct job *job) {
    target_release(&job->target);
    buffer_release(&job->body);
    free(job->location);
    free(job);
}
