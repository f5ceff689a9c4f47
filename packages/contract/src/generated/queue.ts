// Generated from queue.openapi.yaml. Do not edit.
export interface paths {
  '/v1/events': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Follow what happens to tasks
     * @description A stream of server-sent events. Each has an `id` (its cursor), an `event` (the type) and
     *     `data`: one TaskEvent as JSON. Without a cursor the stream starts now. Reconnect with
     *     `Last-Event-ID` or `cursor`, and nothing is skipped; events may be repeated. Events are kept
     *     for ten minutes, the newest 100,000 of them, and only while somebody reads them or did so in
     *     the last ten minutes. A cursor that is too old is 410 STALE_CURSOR, one that cannot be read
     *     422 INVALID_QUERY. Only events of queues on which the caller has a role are sent. An `id`
     *     without data moves the cursor; a silent stream sends a comment every 15 seconds.
     */
    get: operations['streamEvents'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/tasks': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /**
     * List tasks
     * @description Tasks of one queue in any status, without payload and attempts, newest first. A PENDING task
     *     has `waiting_for`. Request the next page with `next_cursor` as `cursor` and the same filter;
     *     `next_cursor` is `""` on the last page.
     *
     *     A page reads at most 4,000 tasks. When the filter matches few of them, the page can be
     *     short or empty and still have a cursor: continue with it. Cursors become stale as in the DLQ
     *     (410 STALE_CURSOR).
     */
    get: operations['listTasks'];
    put?: never;
    /**
     * Submit a task
     * @description Stores one task and answers once it is on disk. The queue must be configured; it is never
     *     made on the fly.
     *
     *     Submit is idempotent on `id`. The same id in the same queue, in any status, answers 202 with
     *     the existing envelope and `Idempotent-Replayed: true`; the other fields of the repeated
     *     request are not compared. The same id in another queue is 409 ID_CONFLICT. For 24 hours
     *     after a task was purged or its retention ran out, its id answers with a tombstone
     *     (`purged: true`) and nothing runs.
     *
     *     Submit is idempotent on `unique_key` too: while a task of the queue holds the key, the answer
     *     is that task.
     *
     *     The payload may have up to the queue's `limits.max_payload_bytes` after decoding (1 MiB by
     *     default, at most 8 MiB); a larger one is 413. The whole body is limited to 12 MiB: 8 MiB in
     *     base64 and room for the rest.
     */
    post: operations['submitTask'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/tasks:count': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /**
     * Count tasks
     * @description How many tasks of the queue match, with the filters of the list. A count of up to 10,000 is
     *     exact, and so is one without any filter but `status`; a larger one may be an estimate.
     */
    get: operations['countTasks'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/tasks:batch': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Submit up to 1,000 tasks
     * @description Each item is judged alone, with the rules of a single submit: a bad item never blocks the
     *     others, and its result carries the status and code that a single submit would have answered
     *     (`x-item-codes`). Accepted items are stored in one commit. Results stand in the order of the
     *     request. An empty array answers 207 with an empty array. The same id twice in one batch
     *     gives two 202 results and one task.
     *
     *     Only failed items need to be sent again. Where a rate limit or `max_pending` leaves room for
     *     some items only, the first ones are taken and the rest answer 429.
     *
     *     The request as a whole is refused when it is not an array (422 INVALID_TASK), has more than
     *     1,000 items (422 BATCH_TOO_LARGE) or more than 16 MiB (413 PAYLOAD_TOO_LARGE), when the
     *     server sheds load (429) or the commit fails (503; none of the items is stored).
     */
    post: operations['submitBatch'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tasks/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    /**
     * Look up a task
     * @description The full task in any status. The grant is checked on the queue the task is stored in; there
     *     is no global read role. An unknown, malformed, purged or expired id is 404 TASK_NOT_FOUND,
     *     and so is a task of a queue without a grant. The role `worker` may look up a task only while
     *     it holds its lease, with the token in `X-Queue-Lease-Token`; otherwise it is 403.
     *
     *     With `wait_ms` the answer comes when the task has ended, or else when that time is over: look
     *     at `status`.
     */
    get: operations['getTask'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    /**
     * Change the priority or the time of a task
     * @description Changes a PENDING task; one in any other status is 409 TASK_NOT_PENDING. A field that is
     *     left out stays as it is. Every call writes an audit record (`update`).
     */
    patch: operations['updateTask'];
    trace?: never;
  };
  '/v1/tasks/{id}:cancel': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Cancel a task
     * @description The task becomes DEAD with `dead_reason` CANCELLED and can be redriven like any dead task. A
     *     PENDING task never starts again. An IN_FLIGHT task loses its lease: its callback connection
     *     is closed, and its handler gets 409 LEASE_LOST with `reason: CANCELLED` when it reports.
     *
     *     A task that SUCCEEDED or died otherwise is 409 TASK_FINISHED; cancelling a cancelled task
     *     again is fine. Every call that is answered with 200 writes an audit record (`cancel`). The
     *     body may be left out.
     */
    post: operations['cancelTask'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tasks/{id}:run-now': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Make a waiting task due
     * @description A PENDING task becomes due at once, whether it was delayed or waits for a retry; limits,
     *     pause and order of the queue still apply. In any other status it is 409 TASK_NOT_PENDING.
     *     Writes an audit record (`run_now`).
     */
    post: operations['runTaskNow'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/tasks:cancel': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Cancel pending tasks
     * @description Cancels the selected PENDING tasks, oldest first: they become DEAD with `dead_reason`
     *     CANCELLED. Tasks in other statuses, and those submitted after the call started, are not
     *     touched. After 25 seconds the call stops and answers `complete: false`: send it again for
     *     the rest. Every call but a `dry_run` writes an audit record (`cancel`), also when the count
     *     is 0.
     */
    post: operations['cancelTasks'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/dlq': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /**
     * Browse dead tasks
     * @description Dead tasks with payload and attempts, newest death first. Page on by sending `next_cursor`
     *     as `cursor` with the same filter; `next_cursor` is `""` on the last page. A page holds at
     *     most 8 MiB (but always one task), so it can be shorter than `limit` without being the last.
     *     The embedded store reads at most 100,000 dead tasks for a page: when the filter matches few of
     *     them, the page can be short or empty and still have a `next_cursor`.
     *
     *     The cursor is opaque. It is 410 STALE_CURSOR when it is older than 24 hours, was made for
     *     another queue or filter, when the queue was deleted and made again, or when it cannot be
     *     read: start again without a cursor. `limit` may change between pages.
     */
    get: operations['listDlq'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/dlq:redrive': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Run dead tasks again
     * @description Moves the selected dead tasks back to PENDING, oldest death first: same id, `attempt` 0,
     *     `redrive_count` one higher, `expires_at` cleared, history kept. `rate_per_second` spreads
     *     their starts.
     *
     *     The call is synchronous and `count` is what was really moved. Tasks that die after the call
     *     started are not touched; ids that are not in this queue's DLQ are skipped. After 25
     *     seconds the call stops and answers `complete: false`: send it again for the rest. Every call
     *     but a `dry_run` writes an audit record, also when the count is 0.
     */
    post: operations['redriveDlq'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/dlq:purge': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Delete dead tasks
     * @description Deletes the selected dead tasks permanently. A tombstone keeps each id for 24 hours, so that a
     *     late client retry does not run the task again.
     *
     *     The call is synchronous and `count` is what was really deleted. Tasks that die after the
     *     call started are not touched; ids that are not in this queue's DLQ are skipped. After 25
     *     seconds the call stops and answers `complete: false`: send it again for the rest. Every call
     *     but a `dry_run` writes an audit record, also when the count is 0.
     */
    post: operations['purgeDlq'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/dlq:groups': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /**
     * Group dead tasks by failure
     * @description What is in the DLQ, grouped by error type, handler and HTTP status, largest group first;
     *     at most the 1,000 largest. The three key fields of a group are a filter for redrive and
     *     purge (leave out a null `http_status`).
     */
    get: operations['listDlqGroups'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/metrics': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /**
     * Read the history of a queue
     * @description What happened in the queue, in steps: ten seconds for the last 2 hours, one minute for 48 hours,
     *     fifteen minutes for 30 days. The points are without gaps, oldest first; the last one is still
     *     under way. The history is stored every ten seconds: a crash loses the last twenty, and another
     *     server shows what this one counted with that delay.
     */
    get: operations['getQueueMetrics'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/jobs': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /**
     * List the jobs of a queue
     * @description Jobs that run, and those that ended in the last seven days, newest first.
     */
    get: operations['listJobs'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/jobs/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The job's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['JobId'];
      };
      cookie?: never;
    };
    /**
     * Read a job
     * @description The job and its progress.
     */
    get: operations['getJob'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/jobs/{id}:cancel': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The job's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['JobId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Cancel a job
     * @description The job stops; what it has done stays done. A job that has ended is 409 JOB_FINISHED. Takes no
     *     body.
     */
    post: operations['cancelJob'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/stats': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /** Count the tasks of a queue */
    get: operations['getStats'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/schedules': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /**
     * List the schedules of a queue
     * @description Schedules of the queue, by name, without the payloads of their tasks: read one schedule for
     *     its payload. Request the next page with `next_cursor` as `cursor`; `next_cursor` is `""` on
     *     the last page. A page can be shorter than `limit` when schedules are large.
     */
    get: operations['listSchedules'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/schedules/{schedule}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /**
     * Read a schedule
     * @description The schedule with its next and its last run.
     */
    get: operations['getSchedule'];
    /**
     * Create or replace a schedule
     * @description Creates the schedule or replaces it whole. Exactly one of `cron` and `every_ms` is given.
     *
     *     At each time of the schedule the server submits `task`. The id of that task is derived from
     *     queue, schedule and time, so several servers on one database submit it once. On a day with a
     *     clock change, a cron time that does not exist runs at the first moment after the gap, and one
     *     that exists twice runs at its first occurrence.
     *
     *     A write that leaves `cron`, `every_ms` and `timezone` as they are keeps `next_run_at`. It never
     *     changes `paused`. The principal of the write is `submitted_by` of the tasks.
     */
    put: operations['putSchedule'];
    post?: never;
    /**
     * Delete a schedule
     * @description Tasks that it submitted stay.
     */
    delete: operations['deleteSchedule'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/schedules/{schedule}:run-now': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
        /**
         * @description The schedule's name.
         * @example nightly-report
         */
        schedule: components['parameters']['ScheduleName'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Run a schedule now
     * @description Submits the task of the schedule at once, also while the schedule is paused or an earlier task
     *     still runs, and leaves `next_run_at` as it is. `last_task_id` of the answer is the new task. Takes
     *     no body.
     */
    post: operations['runSchedule'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/schedules/{schedule}:pause': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
        /**
         * @description The schedule's name.
         * @example nightly-report
         */
        schedule: components['parameters']['ScheduleName'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Pause a schedule
     * @description No task is submitted until the schedule is resumed; `next_run_at` is null. Takes no body. Pausing
     *     a paused schedule is fine.
     */
    post: operations['pauseSchedule'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/schedules/{schedule}:resume': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
        /**
         * @description The schedule's name.
         * @example nightly-report
         */
        schedule: components['parameters']['ScheduleName'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Resume a schedule
     * @description Goes on with the next time of the schedule; times that passed during the pause are not caught up.
     *     Takes no body. Resuming a schedule that is not paused is fine.
     */
    post: operations['resumeSchedule'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/admin/queues/{queue}:pause': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Stop claiming
     * @description No task of the queue is started until it is resumed, also after a restart. Running ones
     *     finish, submits are still accepted and kept, expiry goes on. Takes no body. Pausing a paused
     *     queue is fine. Writes an audit record and leaves the config's `version` as it is.
     */
    post: operations['pauseQueue'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/admin/queues/{queue}:resume': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Start claiming again
     * @description Takes no body. Resuming a running queue is fine. Writes an audit record and leaves the
     *     config's `version` as it is.
     */
    post: operations['resumeQueue'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/admin/queues': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the queues
     * @description Every queue on which the caller has the admin role, by name. A principal that is admin of
     *     none is 403 FORBIDDEN.
     */
    get: operations['listQueues'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/admin/queues/{queue}/config': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /**
     * Read a queue's config
     * @description The stored config with every default filled in. Secrets appear by name only.
     */
    get: operations['getQueueConfig'];
    /**
     * Create a queue or replace its config
     * @description Replaces the whole config: what is left out returns to its default. The answer has every
     *     default filled in. Policy is read when a task is claimed, so a change also applies to tasks
     *     already queued. The pause is not changed. Each write raises `version` by one and writes an
     *     audit record.
     *
     *     Refusals: an unknown key, a value out of range, a secret that does not exist or is not open
     *     to this queue, a status that is in both `retry_statuses` and `dead_statuses`, a read-only
     *     field with another value than the current one, or a path name that cannot be a queue's are
     *     422 INVALID_CONFIG with a JSON pointer each. A callback URL that is not on the server's
     *     allowlist is 422 CALLBACK_URL_NOT_ALLOWED.
     *
     *     To change a config safely, GET it, edit it, and PUT it with `If-Match` set to the `ETag`.
     */
    put: operations['putQueueConfig'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/admin/queues/{queue}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /**
     * Delete an empty queue
     * @description Refused with 409 QUEUE_NOT_EMPTY while the queue has pending, in-flight or dead tasks; its
     *     succeeded tasks go with it. Cursors of the queue become stale. Writes an audit record.
     */
    delete: operations['deleteQueue'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/admin/queues/{queue}:test': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Send one probe to the callback
     * @description Sends one request to the queue's callback with its auth, signature and timeouts, and
     *     reports what came back. The probe has an empty body, a fresh ULID as its task id,
     *     `X-Queue-Handler-Ref: queue.probe` and `X-Queue-Probe: true`, and no lease token. No task is
     *     stored, nothing is retried, and circuit breaker and pause are left alone. A target that
     *     fails or is blocked is a 200 answer with `delivered: false`. Takes no body.
     */
    post: operations['testCallback'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/admin/backup': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Back up all queues while serving
     * @description A backup of one moment of the embedded store: all queues with their tasks, schedules, jobs and
     *     the audit log. `since_seq` gives only what was committed after an earlier backup; 409
     *     BACKUP_UNAVAILABLE when the log no longer has all of it. `ctl queue backup` writes and checks
     *     the files. A store in PostgreSQL is 409 BACKUP_UNAVAILABLE: back up the database with its own
     *     tools. Takes the role admin on `*`.
     */
    get: operations['backupQueues'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/admin/audit': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the audit log
     * @description Every redrive, purge, pause, resume, config write and queue deletion, newest first. Each
     *     record is written in the same commit as the act and carries the hash of the one before it,
     *     over the whole server. Without `queue` the answer holds the records of every queue on which
     *     the caller is admin; missing `seq` numbers are then records of other queues, and checking
     *     the whole chain takes a grant on `*`. Records of deleted queues stay.
     *
     *     Paging and cursors work as in the DLQ.
     */
    get: operations['listAudit'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/flows': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Submit tasks that depend on each other
     * @description Stores all tasks or none, in one commit, over any queues on which the caller is a submitter. A
     *     dependency is the `key` of another task of the flow, the id of a stored task, or an object
     *     with `on`. A flow that breaks a rule is 422 INVALID_FLOW with a pointer for each fault.
     *
     *     With a `flow_id` of your own the call can be repeated: a flow that is stored is answered as it
     *     is, with `Idempotent-Replayed: true`.
     */
    post: operations['submitFlow'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/flows/{flow_id}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The flow's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6F
         */
        flow_id: components['parameters']['FlowId'];
      };
      cookie?: never;
    };
    /**
     * Get the tasks of a flow
     * @description The tasks of a flow with their statuses and dependencies, in the order they were given. A task
     *     in a queue on which the caller is no submitter is `{key, id, hidden: true}`; a flow of which
     *     the caller may see nothing, or whose tasks are all gone, is 404 TASK_NOT_FOUND.
     */
    get: operations['getFlow'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tasks/{id}/steps': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Record what a task has done
     * @description Under its lease a handler records a step, or several at once with `steps`, atomically. The
     *     first record of a name wins: another one answers with the stored step and `recorded: false`.
     *     A later claim of the task carries all steps. A lost lease is 409 LEASE_LOST and records nothing.
     *
     *     At most `limits.max_steps` steps a task (422 TOO_MANY_STEPS); a result of more than 256 KiB or
     *     more than 8 MiB of all steps is 413 STEP_TOO_LARGE. `consumes` removes signals in the same
     *     commit.
     */
    post: operations['recordSteps'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tasks/{id}/signals': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Send a signal to a task
     * @description Stores the signal durably and in order, and wakes the task if it is suspended on the name. A
     *     signal with an `id` that was sent before answers as the first time and stores nothing. At
     *     most 100 unread signals a task (429 SIGNALS_FULL). A task that has ended is 409 TASK_ENDED.
     */
    post: operations['sendSignal'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/signals': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Send a signal to the task with a unique key
     * @description Like a signal to a task, which is found by the unique key it holds in the queue. A key that no
     *     task holds is 404 TASK_NOT_FOUND.
     */
    post: operations['sendQueueSignal'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tasks/{id}/run': {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The token of the task's lease; without it the caller must be a submitter.
         * @example l1.7.Zk3vQm9X
         */
        'X-Queue-Lease-Token'?: components['parameters']['OptionalLeaseToken'];
      };
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    /**
     * Get the steps and signals of a task
     * @description What a claim carries beside the task: steps, unread signals, dependencies, the tasks that it
     *     waited for, and what woke it. For the handler of a callback, which sends the lease token, and
     *     for submitters.
     */
    get: operations['getTaskRun'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tasks/{id}/tree': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    /**
     * Get a task with its children
     * @description The task with its children and theirs, at most 1,000 nodes. A child in a queue on which the
     *     caller is no submitter is `{id, hidden: true}`.
     */
    get: operations['getTaskTree'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tasks/{id}:complete': {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The token that the callback carried, unless the body has `lease_token`. Missing, empty or
         *     longer than 256 characters is 422 INVALID_TASK; any other that does not hold the task's
         *     lease is 409 LEASE_LOST.
         * @example l1.7.Zk3vQm9X
         */
        'X-Queue-Lease-Token'?: components['parameters']['BodyLeaseToken'];
      };
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Settle long work as succeeded
     * @description For a handler that answered its callback with 202 and `X-Queue-Async: true`. Takes the lease
     *     token of that callback. The task becomes SUCCEEDED. Sending the same call with the same
     *     token again is fine and answers 200; a lease that ran out, was settled otherwise or belongs
     *     to another attempt is 409 LEASE_LOST and changes nothing. The body may be left out.
     *
     *     `result` is kept with the task, see task lookup; more than 64 KiB is 422 RESULT_TOO_LARGE.
     *     `steps` are recorded in the same commit, also with `suspend`; if they cannot be, the task is
     *     not settled.
     */
    post: operations['completeTask'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tasks/{id}:fail': {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The token that the callback carried. Missing, empty or longer than 256 characters is 422
         *     INVALID_TASK; any other that does not hold the task's lease is 409 LEASE_LOST.
         * @example l1.7.Zk3vQm9X
         */
        'X-Queue-Lease-Token': components['parameters']['LeaseToken'];
      };
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Settle long work as failed
     * @description Ends the attempt as FAILED. The task is retried by the queue's policy, or becomes DEAD when
     *     its attempts are used up or `retry` is false (`dead_reason` PERMANENT). Lease token, repeats
     *     and LEASE_LOST as in `:complete`. The body may be left out.
     */
    post: operations['failTask'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tasks/{id}:extend': {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The token that the callback carried. Missing, empty or longer than 256 characters is 422
         *     INVALID_TASK; any other that does not hold the task's lease is 409 LEASE_LOST.
         * @example l1.7.Zk3vQm9X
         */
        'X-Queue-Lease-Token': components['parameters']['LeaseToken'];
      };
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Extend the lease of long work
     * @description Extends the lease to at least `extend_ms` from now; it is never shortened. Call it well
     *     before `lease_expires_at`. Lease token and LEASE_LOST as in `:complete`.
     */
    post: operations['extendTask'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/tasks:claim': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Claim tasks of a pull queue
     * @description Takes up to `limit` due tasks, each under a lease of its own, and answers when there is at
     *     least one or when `wait_ms` is over (then with an empty list). Order, priorities, groups,
     *     `max_in_flight`, `dispatch_per_second`, pause and the circuit breaker apply as for
     *     callbacks. Settle each task with `:complete`, `:fail` or `tasks:settle`, and keep its lease
     *     with `:extend`. A lease that runs out counts as an attempt (LEASE_EXPIRED). A waiting claim
     *     ends with an empty list when the server shuts down. Of tasks with large payloads a claim
     *     takes fewer: about 16 MiB.
     */
    post: operations['claimTasks'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/tasks:settle': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Settle many claimed tasks at once
     * @description Ends the leases of up to 100 tasks of this queue, each as `:complete` or `:fail` would. One
     *     result per item, in order: 200 with the envelope, or the refusal of that item
     *     (TASK_NOT_FOUND, LEASE_LOST, INVALID_CLAIM for a malformed item). Repeating the call with the
     *     same tokens is fine.
     */
    post: operations['settleTasks'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/queues/{queue}/workers': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    /**
     * List the workers of a queue
     * @description The workers that claimed, extended or settled in the last 10 minutes, on any server, most
     *     recently seen first. Counters start when a worker is first seen and are forgotten with it.
     */
    get: operations['listWorkers'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/healthz': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Report liveness
     * @description Reports that the process is up. Checks no dependency.
     */
    get: operations['getLiveness'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/readyz': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Report readiness
     * @description 200 when every dependency probe passes. 503 STORAGE_UNAVAILABLE with `Retry-After: 5`
     *     otherwise, and while the server drains before it stops. The probe's result is kept for one
     *     second.
     */
    get: operations['getReadiness'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/openapi.yaml': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** This document */
    get: operations['getOpenapi'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export interface webhooks {
  executeTask: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * The callback that runs a task
     * @description What the server sends to a queue's `callback.url` to run one attempt: the payload's bytes,
     *     unchanged, with the task's headers, the headers below, and `Authorization` (or the header
     *     named in the config) if the queue has `auth`. Task headers that are not passed on:
     *     hop-by-hop headers, `host`, `content-*`, `authorization`, `cookie`, `user-agent`,
     *     `webhook-*` and `x-queue-*`.
     *
     *     **At least once.** The same task can arrive more than once, also twice at the same time when
     *     a lease ran out. Use `webhook-id` (the task id, the same in every attempt and redrive) to
     *     recognise it.
     *
     *     **Time.** The attempt has `callback.timeout_ms` from name resolution to the last byte. The
     *     first 64 KiB of the answer are read. Redirects are never followed. The claim holds a lease
     *     of that time and `lease.grace_ms`; a lease that runs out counts as an attempt
     *     (LEASE_EXPIRED). A server that shuts down in good order hands its tasks back, which does not
     *     count.
     *
     *     **Signature.** With `signing`, the request is signed by the Standard Webhooks scheme: for
     *     each secret `v1,` and the base64 HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}`
     *     over the raw bytes, several separated by a space while secrets rotate. The key is the base64
     *     part of the secret after `whsec_`.
     *
     *     **Result.** 2xx succeeds. 3xx, 408, 425, 429, 5xx and network errors are retried. Any other
     *     4xx is DEAD at once (PERMANENT). The queue's `retry_statuses` and `dead_statuses` override
     *     this, and `X-Queue-Retry: never` ends the task whatever the failing status.
     *
     *     **Delay.** After attempt n the next one waits `min(max_backoff_ms, initial_backoff_ms *
     *     multiplier^(n-1))`, of which one half is fixed and the other random. `Retry-After` (seconds
     *     or a date) raises the delay, up to one hour. After `max_attempts` the task is DEAD
     *     (ATTEMPTS_EXHAUSTED).
     *
     *     **Not yet.** A handler that cannot begin the work now (a budget is used up, a provider says
     *     when to come back) adds `X-Queue-Defer: true` to an answer that is retried. The task waits
     *     as it would for a retry, but the attempt does not count, here or for the circuit breaker, so
     *     it may wait for days.
     *
     *     **Suspending.** A handler that waits answers 200 with `Content-Type:
     *     application/vnd.millrace.suspend+json` and a Suspension as the body. Steps and signals are
     *     read with the lease token by `GET /v1/tasks/{id}/run`.
     *
     *     **Order.** Higher `priority` first; within it group keys take turns; then due time, then id.
     *     No order is guaranteed unless the queue has `ordering.mode: group`.
     *
     *     **Circuit breaker.** When `failure_ratio` of at least `min_requests` calls in `window_ms`
     *     failed, deliveries pause for `open_ms`, then three probes decide. Waiting uses no attempts.
     */
    post: operations['executeTask'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export interface components {
  schemas: {
    /**
     * @description A ULID as stored, in upper case.
     * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
     */
    Ulid: string;
    /**
     * @description A ULID in either case; stored in upper case.
     * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
     * @example 01jd3z8q4m7x2n5v9rtbkwch6e
     */
    InputUlid: string;
    /**
     * @description A queue's name.
     * @example payments.capture
     */
    QueueName: string;
    /**
     * @description Names the handler that runs a task.
     * @example mail.send
     * @example billing/invoice@v2
     */
    HandlerRef: string;
    /**
     * Format: date-time
     * @description RFC 3339, UTC, milliseconds.
     * @example 2026-03-02T09:15:00.000Z
     */
    Timestamp: string;
    /**
     * Format: date-time
     * @description RFC 3339, UTC, milliseconds, or null.
     * @example 2026-03-02T09:15:00.000Z
     * @example null
     */
    NullableTimestamp: string | null;
    /**
     * Format: date-time
     * @description RFC 3339 with any offset.
     * @example 2026-03-02T10:15:00+01:00
     */
    InputTimestamp: string;
    /**
     * @description Opaque; names one claim of one task.
     * @example l1.7.Zk3vQm9X
     */
    LeaseToken: string;
    /**
     * Format: binary
     * @description The bytes of the payload, as they are.
     */
    PayloadBytes: string;
    /**
     * @description The kind of a failure: one of those below, or what the handler named in
     *     `X-Queue-Error-Type` or `:fail`.
     *
     *     | value | meaning |
     *     |---|---|
     *     | TIMEOUT | no whole answer within the timeout, or HTTP 408 |
     *     | CONNECTION_REFUSED | nothing listens there |
     *     | CONNECTION_RESET | the connection broke |
     *     | DNS_FAILURE | the name has no address |
     *     | TLS_FAILURE | no trusted TLS connection |
     *     | NETWORK_ERROR | any other network failure |
     *     | REDIRECT | HTTP 3xx; never followed |
     *     | RATE_LIMITED | HTTP 429 |
     *     | UNAVAILABLE | HTTP 503 |
     *     | HTTP_4XX | any other HTTP 4xx |
     *     | HTTP_5XX | any other HTTP 5xx |
     *     | TARGET_BLOCKED | the address or URL is not allowed; retried, counts as an attempt |
     *     | LEASE_EXPIRED | the lease ran out before the attempt was settled |
     *     | EXPIRED | `expires_at` passed before the task was done |
     *     | CANCELLED | an operator cancelled the task |
     *     | INTERNAL | failed without a stated reason |
     * @example HTTP_5XX
     * @example QUOTA_EXCEEDED
     */
    ErrorType: string;
    /**
     * @description An HTTP status.
     * @example 503
     */
    HttpStatus: number;
    /**
     * @description An HTTP status, or null when there was no answer.
     * @example 503
     * @example null
     */
    NullableHttpStatus: number | null;
    /**
     * @description PENDING waits (also for a later time or a retry), IN_FLIGHT is being run, SUCCEEDED is done,
     *     DEAD is in the DLQ.
     * @enum {string}
     */
    TaskStatus: 'PENDING' | 'IN_FLIGHT' | 'SUCCEEDED' | 'DEAD';
    /**
     * @description Names are RFC 9110 tokens; values are visible ASCII with inner spaces, may be empty, and
     *     have no space at either end. At most 64, and 16 KiB over all names and values.
     * @example {
     *       "X-Tenant": "acme"
     *     }
     */
    TaskHeaders: {
      [key: string]: string;
    };
    /** @description A task to run. Only `handler_ref` is required. */
    SubmitTaskRequest: {
      /** @description Makes the submit idempotent. Without it the server makes one, monotonically. */
      id?: components['schemas']['InputUlid'];
      /** @description Names the handler; passed to the callback as `X-Queue-Handler-Ref`. */
      handler_ref: components['schemas']['HandlerRef'];
      /**
       * @description The payload in base64 by RFC 4648 section 4: standard alphabet, padded, no line breaks,
       *     unused bits zero. The server checks this strictly (422 INVALID_TASK), and the decoded
       *     size against the queue's limit (413 PAYLOAD_TOO_LARGE); the schema checks neither.
       * @default
       * @example aGVsbG8=
       */
      payload?: string;
      /**
       * @description The media type of the payload; the callback's `Content-Type`.
       * @default application/octet-stream
       * @example application/json
       * @example text/plain; charset=utf-8
       */
      payload_content_type?: string;
      /**
       * @description Stored as they are and passed to the callback, except hop-by-hop headers, `host`,
       *     `content-*`, `authorization`, `cookie`, `user-agent`, `webhook-*` and `x-queue-*`. At
       *     most 64, and 16 KiB over all names and values.
       * @default {}
       */
      headers?: components['schemas']['TaskHeaders'];
      /**
       * @description Not before this time, at most 30 days ahead. A time in the past means now. Not together
       *     with `delay_ms`.
       */
      run_at?: components['schemas']['InputTimestamp'];
      /**
       * @description Not before this many milliseconds from now, at most 30 days. Not together with `run_at`.
       * @example 60000
       */
      delay_ms?: number;
      /**
       * @description Must be in the future. A task that waits at this time becomes DEAD (EXPIRED), also while
       *     the queue is paused; a running attempt may finish but is not retried.
       */
      expires_at?: components['schemas']['InputTimestamp'];
      /**
       * @description Higher is claimed first.
       * @default 4
       */
      priority?: number;
      /**
       * @description Tasks of one priority with different keys take turns. Where the queue has
       *     `ordering.mode: group`, the tasks of one key run one after another, in order.
       * @example acme
       */
      group_key?: string;
      /**
       * @description At most one task of the queue holds a key. A submit with a key that is held answers with
       *     the task that holds it and `Idempotent-Replayed: true`, and stores nothing. At most 256
       *     bytes. Without `unique_for_ms` the key is free when the task ends.
       * @example invoice-4711
       */
      unique_key?: string;
      /**
       * @description The key is held this long from the submit, at most 30 days, whether or not the task has
       *     ended by then. Needs `unique_key`.
       * @example 86400000
       */
      unique_for_ms?: number;
      /**
       * @description The task runs this long after the last submit with its `unique_key`, which it needs: a
       *     submit while it is PENDING replaces its payload and its time, and answers with that task.
       *     One that has started gives the key to the new task.
       * @example 5000
       */
      debounce_ms?: number;
      /** @description After this many attempts the task is DEAD; instead of the queue's limit. */
      max_attempts?: number;
      /** @description The delay between its attempts; instead of the queue's. */
      backoff?: components['schemas']['TaskBackoff'];
      /**
       * @description How long an attempt may take; instead of the callback's. Workers of a pull queue get it
       *     with the task and keep to it.
       */
      timeout_ms?: number;
      /** @description How long the task is kept after its end; instead of the queue's retention. */
      retain_ms?: number;
      /**
       * @description Only claims that name all of these labels get the task. Callbacks ignore them.
       * @example [
       *       "gpu",
       *       "eu"
       *     ]
       */
      labels?: components['schemas']['Label'][];
      /**
       * @description Tasks that must end first, in any queue where the caller is a submitter; at most 100.
       *     One that is unknown is 422 INVALID_TASK; of a batch, items may name each other.
       */
      depends_on?: components['schemas']['DependsOn'];
      /**
       * @description The task that this one is a child of; 409 TASK_ENDED if that has ended. Needs its lease
       *     token, or the role operator on its queue.
       */
      parent_id?: components['schemas']['InputUlid'];
      /** @description The token of the parent's lease. Needs `parent_id`. */
      parent_lease_token?: components['schemas']['LeaseToken'];
    };
    /** @description Tasks that must end first: ids, or objects with `on`. Duplicates count once. */
    DependsOn: (string | components['schemas']['DependencyInput'])[];
    /** @description A task that must end first. */
    DependencyInput: {
      /** @description The id of a task. */
      id?: string;
      /** @description In a flow, the key of a task of it, instead of an id. */
      key?: string;
      /**
       * @description `end`: also when it dies.
       * @default success
       * @enum {string}
       */
      on?: 'success' | 'end';
    };
    /** @description A task that must end first. */
    Dependency: {
      /** @description Its id. */
      id: components['schemas']['Ulid'];
      /**
       * @description Whether it must succeed, or only end.
       * @enum {string}
       */
      on: 'success' | 'end';
      /** @description Its status; of one that is gone, the one it ended with. */
      status: components['schemas']['TaskStatus'];
    };
    /** @description Tasks that depend on each other. */
    FlowRequest: {
      /** @description Makes the call idempotent. Without it the server makes one. */
      flow_id?: components['schemas']['InputUlid'];
      /**
       * @description The tasks. Each has a `key` that is unique in the flow, a `queue`, and the fields of a
       *     submit.
       */
      tasks: ({
        /** @description Names the task in the flow. */
        key: string;
        /** @description The queue to store it in. */
        queue: string;
      } & {
        [key: string]: unknown;
      })[];
    };
    /** @description A stored flow. */
    FlowResult: {
      /** @description The flow's id; `flow_id` of its tasks. */
      flow_id: components['schemas']['Ulid'];
      /** @description The tasks, in the order of the request. */
      tasks: {
        /** @description Its key. */
        key: string;
        /** @description Its id. */
        id: components['schemas']['Ulid'];
      }[];
    };
    /** @description The tasks of a flow. */
    FlowGraph: {
      /** @description The flow's id. */
      flow_id: components['schemas']['Ulid'];
      /** @description The tasks that are not gone, in the order they were given. */
      tasks: components['schemas']['FlowNode'][];
    };
    /** @description A task of a flow; of one that is hidden only key and id. */
    FlowNode: {
      /** @description Its key. */
      key: string;
      /** @description Its id. */
      id: components['schemas']['Ulid'];
      /** @description `true` if the caller may not see it. */
      hidden?: boolean;
      /** @description Its queue. */
      queue?: components['schemas']['QueueName'];
      /** @description The handler it names. */
      handler_ref?: components['schemas']['HandlerRef'];
      /** @description Its status. */
      status?: components['schemas']['TaskStatus'];
      waiting_for?: components['schemas']['WaitingFor'];
      /** @description The tasks it depends on. */
      depends_on?: components['schemas']['Dependency'][];
      /** @description When it was submitted. */
      created_at?: components['schemas']['Timestamp'];
      /** @description When it ended; null if it has not. */
      ended_at?: components['schemas']['NullableTimestamp'];
    };
    /** @description Why a step failed. */
    StepError: {
      /** @description The kind of failure. */
      type: string;
      /** @description What happened. */
      message: string;
    };
    /** @description A step to record. */
    StepInput: {
      /** @description Names the step in its task. */
      name: components['schemas']['StepName'];
      /** @description Any JSON, at most 256 KiB. */
      result?: unknown;
      /** @description Why it failed, if it did. */
      error?: components['schemas']['StepError'];
      /** @description When the step began. */
      started_at?: components['schemas']['InputTimestamp'];
      /** @description Signals that are read with this step. */
      consumes?: components['schemas']['SignalIds'];
    };
    /** @description The name of a step. */
    StepName: string;
    /** @description Ids of signals. */
    SignalIds: string[];
    /** @description One step, or several in `steps`. */
    RecordStepsRequest: {
      /** @description The token of the task's lease. */
      lease_token: components['schemas']['LeaseToken'];
      /** @description Names the step in its task. */
      name?: components['schemas']['StepName'];
      /** @description Any JSON, at most 256 KiB. */
      result?: unknown;
      /** @description Why it failed, if it did. */
      error?: components['schemas']['StepError'];
      /** @description When the step began. */
      started_at?: components['schemas']['InputTimestamp'];
      /** @description Signals that are read with this step. */
      consumes?: components['schemas']['SignalIds'];
      /** @description Several steps, recorded together or not at all. */
      steps?: components['schemas']['StepInput'][];
    } & (
      | unknown
      | {
          result?: never;
          error?: never;
          started_at?: never;
          consumes?: never;
        }
    );
    /** @description A recorded step. */
    Step: {
      /** @description Its name. */
      name: string;
      /** @description What it returned; null if nothing. */
      result: unknown;
      /** @description Why it failed; null if it did not. */
      error: components['schemas']['StepError'] | null;
      /** @description When it began, if the handler said so. */
      started_at?: components['schemas']['Timestamp'];
      /** @description When it was recorded. */
      recorded_at: components['schemas']['Timestamp'];
      /** @description Whether this call recorded it. Only in the answer to a record. */
      recorded?: boolean;
    };
    /** @description The step, or `steps` if several were sent. */
    StepRecords:
      | components['schemas']['Step']
      | {
          /** @description The steps, in the order of the request. */
          steps: components['schemas']['Step'][];
        };
    /** @description The name of a signal. */
    SignalName: string;
    /** @description A signal. */
    SendSignalRequest: {
      /** @description What the task waits for. */
      name: components['schemas']['SignalName'];
      /** @description Any JSON, at most 64 KiB. */
      payload?: unknown;
      /** @description Makes the call idempotent. Without it the server makes one. */
      id?: string;
    };
    /** @description A signal to the task that holds a unique key. */
    SendQueueSignalRequest: {
      /** @description The unique key of the task. */
      unique_key: string;
      /** @description What the task waits for. */
      name: components['schemas']['SignalName'];
      /** @description Any JSON, at most 64 KiB. */
      payload?: unknown;
      /** @description Makes the call idempotent. Without it the server makes one. */
      id?: string;
    };
    /** @description A signal of a task. */
    Signal: {
      /** @description Its id. */
      id: string;
      /** @description Its name. */
      name: string;
      /** @description What it carries; null if nothing. */
      payload: unknown;
      /** @description When it was received. */
      received_at: components['schemas']['Timestamp'];
    };
    /** @description A task that another one depends on or waited for. */
    EndedTask: {
      /** @description Its id. */
      id: components['schemas']['Ulid'];
      /** @description Its key in the flow, if it has one. */
      key?: string;
      /** @description The handler it names; absent if the task is gone. */
      handler_ref?: components['schemas']['HandlerRef'];
      /** @description Its status. */
      status: components['schemas']['TaskStatus'];
      /** @description Its result; null if it has none. */
      result: unknown;
      /** @description `true` if the result was left out because all together are too large. */
      result_omitted?: boolean;
    };
    /** @description What ended the last suspension of a task. */
    WokenBy: {
      /**
       * @description A time, a signal or the end of a task.
       * @enum {string}
       */
      kind: 'timer' | 'signal' | 'task';
      /** @description The name of the signal. */
      name?: string;
      /** @description The id of the task. */
      id?: string;
    };
    /** @description What a handler needs to continue a task. */
    TaskRun: {
      /** @description Recorded steps, in the order of recording. */
      steps: components['schemas']['Step'][];
      /** @description Unread signals, in the order of arrival. */
      signals: components['schemas']['Signal'][];
      /** @description Tasks it depends on, in the order given. */
      dependencies: components['schemas']['EndedTask'][];
      /** @description Tasks that the last suspension waited for, in the order given. */
      children: components['schemas']['EndedTask'][];
      /** @description What ended the last suspension; absent if there was none. */
      woken_by?: components['schemas']['WokenBy'];
      /** @description What a suspended or blocked task waits for. */
      wait?: components['schemas']['TaskWait'];
    };
    /** @description What a task waits for. */
    TaskWait: {
      /** @description `dependencies`, `timer`, `signal` or `tasks`. */
      kind: components['schemas']['WaitingFor'];
      /** @description When the wait ends in any case. */
      until?: components['schemas']['Timestamp'];
      /** @description Names of signals. */
      signals?: components['schemas']['SignalName'][];
      /**
       * @description `all`: it waits for all signals and tasks.
       * @enum {string}
       */
      mode?: 'any' | 'all';
    };
    /** @description A task with its children. */
    TaskTree: {
      /** @description The task. */
      root: components['schemas']['TaskNode'];
      /** @description `true` if there are more than 1,000 nodes. */
      truncated: boolean;
    };
    /** @description A task of a tree; of one that is hidden only the id. */
    TaskNode: {
      /** @description Its id. */
      id: components['schemas']['Ulid'];
      /** @description `true` if the caller may not see it. */
      hidden?: boolean;
      /** @description Its queue. */
      queue?: components['schemas']['QueueName'];
      /** @description The handler it names. */
      handler_ref?: components['schemas']['HandlerRef'];
      /** @description Its status. */
      status?: components['schemas']['TaskStatus'];
      waiting_for?: components['schemas']['WaitingFor'];
      /** @description When it was submitted. */
      created_at?: components['schemas']['Timestamp'];
      /** @description When it ended; null if it has not. */
      ended_at?: components['schemas']['NullableTimestamp'];
      /** @description Names of its steps, in the order of recording. */
      steps?: string[];
      /** @description Its children, oldest first. */
      children?: components['schemas']['TaskNode'][];
    };
    /**
     * @description What a suspended task waits for; at least one of `until`, `signals` and `tasks`. With `until`
     *     beside others the time ends the wait in any case.
     */
    Suspension: {
      /** @description Wait until this time. */
      until?: components['schemas']['InputTimestamp'];
      /** @description Wait for signals with these names. */
      signals?: components['schemas']['SignalName'][];
      /** @description Wait for the ends of these tasks. */
      tasks?: components['schemas']['InputUlid'][];
      /**
       * @description `all`: wait for all signals and tasks; else the first one wakes the task.
       * @default any
       * @enum {string}
       */
      mode?: 'any' | 'all';
    };
    /**
     * @description A label of tasks and workers.
     * @example gpu
     */
    Label: string;
    /** @description The delay between the attempts of a task. */
    TaskBackoff: {
      /**
       * @description `exponential` doubles the delay with each failure.
       * @enum {string}
       */
      kind: 'exponential' | 'fixed';
      /** @description The delay after the first failure. */
      ms: number;
      /** @description The longest delay; the queue's if absent. */
      max_ms?: number;
      /**
       * @description The share of the delay that is random: 0.5 takes off up to half of it. `true` is 1, and
       *     none is 0.
       */
      jitter?: number | boolean;
    };
    /**
     * @description The tasks. Each item is checked alone: one that is not a valid SubmitTaskRequest gets its
     *     own 422 result and does not refuse the batch.
     */
    SubmitBatchRequest: components['schemas']['SubmitTaskRequest'][];
    /** @description A failure in short. */
    LastError: {
      /** @description The kind of failure. */
      error_type: components['schemas']['ErrorType'];
      /** @description What happened, at most 1 KiB. */
      message: string;
      /** @description The callback's status; null without an answer. */
      http_status: components['schemas']['NullableHttpStatus'];
      /** @description When it happened. */
      at: components['schemas']['Timestamp'];
    };
    /**
     * @description A task without its payload and attempts. Every field is present; what does not apply is
     *     null.
     */
    Envelope: {
      /** @description The task's id. */
      id: components['schemas']['Ulid'];
      /** @description The queue it is stored in. */
      queue: components['schemas']['QueueName'];
      /** @description The handler it names. */
      handler_ref: components['schemas']['HandlerRef'];
      /** @description Where it stands. */
      status: components['schemas']['TaskStatus'];
      /** @description The media type of the payload. */
      payload_content_type: string;
      /** @description The task's headers as submitted; `{}` if none. */
      headers: components['schemas']['TaskHeaders'];
      /** @description Higher is claimed first. */
      priority: number;
      /** @description The group key; null if none was given. */
      group_key: string | null;
      /**
       * @description Attempts since the submit or the last redrive, a running one included; 0 before the
       *     first. One that was handed back by a server shutting down does not count.
       */
      attempt: number;
      /** @description The same over all redrives; never reset. */
      total_attempts: number;
      /** @description The queue's `retry.max_attempts` of now. */
      max_attempts: number;
      /** @description How often the task was redriven. */
      redrive_count: number;
      /** @description When it was first submitted. */
      created_at: components['schemas']['Timestamp'];
      /** @description When it last changed. */
      updated_at: components['schemas']['Timestamp'];
      /** @description When PENDING, the time from which it may be claimed; else null. */
      next_attempt_at: components['schemas']['NullableTimestamp'];
      /** @description When it expires unless it is done; null if never. */
      expires_at: components['schemas']['NullableTimestamp'];
      /** @description When IN_FLIGHT, the end of its lease; else null. */
      lease_expires_at: components['schemas']['NullableTimestamp'];
      /** @description When it SUCCEEDED; else null. */
      completed_at: components['schemas']['NullableTimestamp'];
      /** @description When DEAD, the time it died; else null (also after a redrive). */
      dead_at: components['schemas']['NullableTimestamp'];
      /**
       * @description When DEAD, why: ATTEMPTS_EXHAUSTED (all attempts failed), PERMANENT (the handler's
       *     answer forbids a retry), EXPIRED (`expires_at` passed), CANCELLED (by an operator),
       *     DEPENDENCY_FAILED (a task it depends on did not succeed), FLOW_STUCK (suspended 10,000
       *     times without a step). Else null.
       * @enum {string|null}
       */
      dead_reason:
        | 'ATTEMPTS_EXHAUSTED'
        | 'PERMANENT'
        | 'EXPIRED'
        | 'CANCELLED'
        | 'DEPENDENCY_FAILED'
        | 'FLOW_STUCK'
        | null;
      /** @description The latest failure, kept after a success or a redrive; null if there was none. */
      last_error: components['schemas']['LastError'] | null;
      /** @description The principal that submitted it. */
      submitted_by: string;
      /** @description Its own backoff; absent if it has none. */
      backoff?: components['schemas']['TaskBackoff'];
      /** @description Its own timeout; absent if it has none. */
      timeout_ms?: number;
      /** @description Its own retention; absent if it has none. */
      retain_ms?: number;
      /** @description Its labels; absent if it has none. */
      labels?: components['schemas']['Label'][];
      /** @description The flow it was submitted with; absent if none. */
      flow_id?: components['schemas']['Ulid'];
      /** @description The task it is a child of; absent if none. */
      parent_id?: components['schemas']['Ulid'];
      /**
       * @description While it is suspended, the time at which it wakes in any case; null if it has none. Else
       *     absent.
       */
      wakes_at?: components['schemas']['NullableTimestamp'];
      /** @description Number of recorded steps, if there are any. */
      step_count?: number;
      /** @description Whether it has child tasks; absent if not. */
      has_children?: boolean;
    };
    /** @description One attempt that has ended. What does not apply is null. */
    Attempt: {
      /** @description Its number since the submit or the redrive, from 1. */
      attempt: number;
      /** @description The task's `redrive_count` at the time. */
      redrive: number;
      /** @description When the task was claimed. */
      started_at: components['schemas']['Timestamp'];
      /** @description When the attempt was settled. */
      ended_at: components['schemas']['Timestamp'];
      /** @description From start to end. */
      duration_ms: number;
      /**
       * @description SUCCEEDED; FAILED; LEASE_EXPIRED (not settled in time); INTERRUPTED (handed back by a
       *     server shutting down; does not count); DEFERRED (the handler asked for it later; does not
       *     count).
       * @enum {string}
       */
      outcome: 'SUCCEEDED' | 'FAILED' | 'LEASE_EXPIRED' | 'INTERRUPTED' | 'DEFERRED';
      /** @description The kind of failure; null on success. */
      error_type: components['schemas']['ErrorType'] | null;
      /** @description What happened, cut to 1 KiB; null on success. */
      message: string | null;
      /** @description The callback's status; null without an answer. */
      http_status: components['schemas']['NullableHttpStatus'];
      /** @description What the handler asked for by `Retry-After` or `retry_after_ms`; null if nothing. */
      retry_after_ms: number | null;
      /** @description When the next attempt became due; null if none followed. */
      next_attempt_at: components['schemas']['NullableTimestamp'];
      /** @description The start of the answer's body as text, cut to 2 KiB; null without an answer. */
      response_snippet: string | null;
      /** @description The URL called, without its query; null if nothing was sent. */
      url: string | null;
      /** @description The address dialled; null if no connection was made. */
      remote_ip: string | null;
      /** @description The server that ran the attempt. */
      node_id: string;
      /** @description The trace id sent in `traceparent`; null if nothing was sent. */
      trace_id: string | null;
    };
    /** @description A full task, as lookup and DLQ pages carry it. */
    Task: components['schemas']['Envelope'] & components['schemas']['TaskDetails'];
    /** @description What a full task has beyond the envelope. */
    TaskDetails: {
      /** @description The payload in base64; `""` for no bytes. */
      payload: string;
      /** @description The attempts that have ended, oldest first. The first and the last 49 are kept. */
      attempts: components['schemas']['Attempt'][];
      waiting_for?: components['schemas']['WaitingFor'];
      /**
       * @description The circuit breaker of its handler, while the task is PENDING and the breaker is not
       *     closed. Only in a lookup.
       */
      breaker?: components['schemas']['HandlerBreaker'];
      /** @description Tasks it depends on, in the order given; absent if none. */
      depends_on?: components['schemas']['Dependency'][];
      /** @description The unique key of the task; null if it has none. Only in a lookup. */
      unique_key?: string | null;
      /**
       * @description What the handler returned: any JSON, from `:complete` or, with `callback.keep_result`,
       *     from the callback's answer. Null if there is none. Only in a lookup.
       */
      result?: unknown;
      /**
       * @description `true` if the callback's answer had a result of more than 64 KiB, which was not kept.
       *     Only in a lookup.
       */
      result_dropped?: boolean;
      /** @description The progress that was reported last; null if none was. Only in a lookup. */
      progress?: components['schemas']['Progress'] | null;
    };
    /** @description How far the work on a task is, as its handler reported it. */
    Progress: {
      /** @description From 0 to 100; null if unknown. */
      percent: number | null;
      /** @description What is being done; null if it was not said. */
      message: string | null;
      /** @description When it was reported. */
      at: components['schemas']['Timestamp'];
    };
    /**
     * @description Why a task is not running. Only in a lookup or a list, and only while the task is PENDING. If
     *     several hold, the first of this list is given: `time` (not due yet), `paused` (the queue is paused,
     *     or held because its callback URL left the allowlist), `concurrency` (`max_in_flight`
     *     reached), `rate_limit` (`dispatch_per_second` reached), `circuit_open` (its handler keeps
     *     failing), `group` (an earlier task of its group goes first, or the group has as many in
     *     flight as it may), `no_worker` (it has been due for more than a second, and no worker was
     *     seen in the last 60 seconds), `dispatch` (it is next in turn). A task of a flow waits for
     *     `dependencies`, or is suspended until a time (`timer`), a `signal` or the end of `tasks`,
     *     which comes before all others.
     * @enum {string}
     */
    WaitingFor:
      | 'time'
      | 'paused'
      | 'concurrency'
      | 'rate_limit'
      | 'circuit_open'
      | 'group'
      | 'no_worker'
      | 'dispatch'
      | 'dependencies'
      | 'timer'
      | 'signal'
      | 'tasks';
    /** @description A task of a list; `waiting_for` only while it is PENDING. */
    ListedTask: components['schemas']['Envelope'] & {
      waiting_for?: components['schemas']['WaitingFor'];
      /** @description Tasks it depends on, in the order given; absent if none. */
      depends_on?: components['schemas']['Dependency'][];
    };
    /** @description A page of tasks. */
    TaskPage: {
      /** @description The tasks, in the requested order. */
      tasks: components['schemas']['ListedTask'][];
      /** @description The `cursor` of the next page; `""` on the last one. */
      next_cursor: string;
    };
    /** @description How many tasks match. */
    TaskCount: {
      /** @description Tasks that match. */
      count: number;
      /** @description `true` if the count is an estimate, which is only so above 10,000. */
      is_estimate: boolean;
    };
    /** @description What is left of a purged or expired task for 24 hours. Nothing runs. */
    Tombstone: {
      /** @description The task's id. */
      id: components['schemas']['Ulid'];
      /** @description The queue it was stored in. */
      queue: components['schemas']['QueueName'];
      /** @description The handler it named. */
      handler_ref: components['schemas']['HandlerRef'];
      /** @description Its last status. */
      status: components['schemas']['TaskStatus'];
      /**
       * @description Always true, and only on tombstones.
       * @constant
       */
      purged: true;
    };
    /** @description The task's envelope, or the tombstone of a task that is gone. */
    SubmitResult: components['schemas']['Envelope'] | components['schemas']['Tombstone'];
    /** @description The result of an item that is stored, or was before. */
    BatchItemAccepted: {
      /** @description The item's place in the request, from 0. */
      index: number;
      /**
       * @description As a single submit would have answered.
       * @constant
       */
      status: 202;
      /** @description The task, or its tombstone. */
      envelope: components['schemas']['SubmitResult'];
    };
    /** @description The result of an item that was refused. */
    BatchItemRejected: {
      /** @description The item's place in the request, from 0. */
      index: number;
      /** @description As a single submit would have answered. */
      status: number;
      /** @description Why it was refused. */
      error: components['schemas']['BatchItemError'];
    };
    /** @description Why an item was refused. */
    BatchItemError: {
      /** @description The machine code. */
      code: components['schemas']['ErrorCode'];
      /** @description The item's HTTP status again. */
      status: number;
      /** @description The code in words. */
      title: string;
      /** @description What is wrong and what to do. */
      detail?: string;
      /**
       * @description `CANCELLED` in a LEASE_LOST because an operator cancelled the task. Else absent.
       * @example CANCELLED
       */
      reason?: string;
      /** @description Each place that is wrong; pointers start at the item. */
      errors?: components['schemas']['FieldError'][];
    };
    /** @description The result of one item; `envelope` on success, `error` on failure. */
    BatchItemResult:
      components['schemas']['BatchItemAccepted'] | components['schemas']['BatchItemRejected'];
    /** @description One result per item, in the order of the request. */
    BatchResult: components['schemas']['BatchItemResult'][];
    /** @description A page of dead tasks. */
    DlqPage: {
      /** @description Dead tasks, newest death first. */
      tasks: components['schemas']['Task'][];
      /** @description The `cursor` of the next page; `""` on the last one. */
      next_cursor: string;
    };
    /**
     * @description Ids of dead tasks of this queue, at most 1,000. Others are skipped, duplicates count
     *     once, and an empty list does nothing.
     */
    SelectorIds: components['schemas']['InputUlid'][];
    /** @description Dead tasks that match every given key; `{}` is the whole DLQ of the queue. */
    SelectorFilter: {
      /** @description Equals `last_error.error_type`. */
      error_type?: components['schemas']['ErrorType'];
      /** @description Equals `handler_ref`. */
      handler_ref?: components['schemas']['HandlerRef'];
      /** @description Died at this time or later. */
      from?: components['schemas']['InputTimestamp'];
      /** @description Died before this time. */
      to?: components['schemas']['InputTimestamp'];
      /** @description Equals `last_error.http_status`. */
      http_status?: components['schemas']['HttpStatus'];
    };
    /**
     * @description Exactly one of `ids` and `filter`. Both, none, or an unknown key is 422 INVALID_SELECTOR, so
     *     that a typo never widens the call.
     */
    RedriveSelector: {
      ids?: components['schemas']['SelectorIds'];
      filter?: components['schemas']['SelectorFilter'];
      /**
       * @description Spreads the starts of the tasks over time; 0 makes them all due at once.
       * @default 500
       */
      rate_per_second?: number;
      /**
       * @description Also bring back the tasks that died of these (DEPENDENCY_FAILED), in any queue, and those
       *     that died of them.
       * @default true
       */
      with_dependents?: boolean;
      /**
       * @description Drop this recorded step and those after it, so that the handler runs them again. A step
       *     that no selected task has is 422. Not together with `reset_steps`.
       */
      from_step?: components['schemas']['StepName'];
      /**
       * @description Drop all recorded steps.
       * @default false
       */
      reset_steps?: boolean;
      /**
       * @description Count only; change nothing.
       * @default false
       */
      dry_run?: boolean;
    } & (unknown | unknown);
    /**
     * @description Exactly one of `ids` and `filter`. Both, none, or an unknown key is 422 INVALID_SELECTOR, so
     *     that a typo never widens the call.
     */
    PurgeSelector: {
      ids?: components['schemas']['SelectorIds'];
      filter?: components['schemas']['SelectorFilter'];
      /**
       * @description Count only; change nothing.
       * @default false
       */
      dry_run?: boolean;
    } & (unknown | unknown);
    /** @description Why the task is cancelled. Every field is optional. */
    CancelTaskRequest: {
      /**
       * @description Kept in `last_error.message` and in the audit record. At most 1 KiB.
       * @example The order was withdrawn
       */
      reason?: string;
      /**
       * @description Also cancel its children that have not ended, and theirs.
       * @default true
       */
      cascade?: boolean;
    };
    /** @description What to change of a task. */
    UpdateTaskRequest: {
      /** @description The new priority. */
      priority?: number;
      /** @description Not before this time, at most 30 days ahead. A time in the past means now. */
      run_at?: components['schemas']['InputTimestamp'];
      /**
       * @description The new payload in base64, as in a submit.
       * @example e30=
       */
      payload?: string;
      /**
       * @description The media type of the new payload; as before if absent.
       * @example application/json
       */
      payload_content_type?: string;
    };
    /** @description PENDING tasks that match every given key; `{}` is all of the queue. */
    CancelFilter: {
      /**
       * @description Only PENDING tasks can be selected.
       * @constant
       */
      status?: 'PENDING';
      /** @description Equals `handler_ref`. */
      handler_ref?: components['schemas']['HandlerRef'];
      /** @description Equals `group_key`. */
      group_key?: string;
      /** @description Created at this time or later. */
      from?: components['schemas']['InputTimestamp'];
      /** @description Created before this time. */
      to?: components['schemas']['InputTimestamp'];
    };
    /**
     * @description Exactly one of `ids` and `filter`. Both, none, or an unknown key is 422 INVALID_SELECTOR, so
     *     that a typo never widens the call.
     */
    CancelSelector: {
      /**
       * @description Ids of PENDING tasks of this queue, at most 1,000. Others are passed over, duplicates
       *     count once, and an empty list does nothing.
       */
      ids?: components['schemas']['SelectorIds'];
      filter?: components['schemas']['CancelFilter'];
      /** @description Kept in `last_error.message` and in the audit record. At most 1 KiB. */
      reason?: string;
      /**
       * @description Only count.
       * @default false
       */
      dry_run?: boolean;
    } & (unknown | unknown);
    /** @description What a redrive, purge or cancel did. */
    SelectorResult: {
      /** @description Tasks affected; with `dry_run`, those that would be. */
      count: number;
      /** @description Tasks that a redrive brought back with them, in any queue; absent if none. */
      dependents?: number;
      /**
       * @description Present, and false, only when the call stopped after 25 seconds with tasks left.
       * @constant
       */
      complete?: false;
    };
    /** @description A redrive or purge that runs on its own. */
    Job: {
      /** @description The job's id. */
      id: components['schemas']['Ulid'];
      /** @description The queue it works on. */
      queue: components['schemas']['QueueName'];
      /**
       * @description What it does.
       * @enum {string}
       */
      action: 'redrive' | 'purge';
      /** @description The body of the redrive or purge as sent. */
      selector: {
        [key: string]: unknown;
      };
      /**
       * @description How far it is. `failed` is a fault of the server; its log has the details.
       * @enum {string}
       */
      status: 'running' | 'done' | 'cancelled' | 'failed';
      /** @description Tasks affected so far. */
      count: number;
      /** @description When it was created. */
      created_at: components['schemas']['Timestamp'];
      /** @description When it ended. */
      finished_at: components['schemas']['NullableTimestamp'];
    };
    /** @description One job. */
    JobResult: {
      /** @description The job. */
      job: components['schemas']['Job'];
    };
    /** @description Jobs of a queue. */
    JobList: {
      /** @description Newest first. */
      jobs: components['schemas']['Job'][];
    };
    /** @description Dead tasks with the same kind of failure. */
    DlqGroup: {
      /** @description Their `last_error.error_type`. */
      error_type: components['schemas']['ErrorType'];
      /** @description Their handler. */
      handler_ref: components['schemas']['HandlerRef'];
      /** @description Their `last_error.http_status`. */
      http_status: components['schemas']['NullableHttpStatus'];
      /** @description Number of tasks. */
      count: number;
      /** @description The earliest `dead_at`. */
      first_seen: components['schemas']['Timestamp'];
      /** @description The latest `dead_at`. */
      last_seen: components['schemas']['Timestamp'];
      /** @description One of them. */
      sample_id: components['schemas']['Ulid'];
      /**
       * @description The message of that task's last failure; only of the 100 largest groups, and absent if it
       *     has none.
       */
      sample_message?: string;
    };
    /** @description The DLQ by kind of failure. */
    DlqGroups: {
      /** @description Largest first. */
      groups: components['schemas']['DlqGroup'][];
    };
    /** @description The counts of one queue. */
    Stats: {
      /** @description PENDING tasks, those that wait for a later time included. */
      pending: number;
      /** @description PENDING tasks that wait for their dependencies. */
      blocked?: number;
      /** @description PENDING tasks that are suspended. */
      suspended?: number;
      /** @description IN_FLIGHT tasks. */
      in_flight: number;
      /** @description DEAD tasks. */
      dlq_depth: number;
      /** @description PENDING tasks that wait for a later time; on PostgreSQL at most 100,000. */
      delayed?: number;
      /** @description The time since the oldest PENDING task became due; 0 if none is due. */
      oldest_pending_age_ms: number;
      state?: components['schemas']['QueueState'];
      /**
       * @description The circuit breakers of the handlers that this server has called or handed tasks of;
       *     empty without a circuit breaker.
       */
      breakers?: components['schemas']['HandlerBreaker'][];
      /**
       * @description Tasks that succeeded since the queue was created, or since the server counts them. What
       *     another server counted is added every ten seconds.
       */
      succeeded_total: number;
      /** @description Attempts that failed, counted alike. */
      failed_total: number;
      /** @description Tasks that died, counted alike; those redriven or purged since are included. */
      dead_total: number;
      /** @description Tasks that succeeded or died per second, over the last minute. */
      rate_per_second: number;
    };
    /** @description The bytes of a backup file. */
    BackupFile: string;
    /** @description Server-sent events; each `data` line is one TaskEvent as JSON. */
    TaskEventStream: string;
    /**
     * @description What happened: `submitted` (stored), `started` (an attempt), `progress` (reported by its
     *     handler), `succeeded`, `failed` (an attempt, also the last), `dead` (no further attempt),
     *     `cancelled`; or `breaker` (the end of the task opened or closed the circuit breaker of its
     *     handler).
     * @enum {string}
     */
    TaskEventType:
      | 'submitted'
      | 'started'
      | 'progress'
      | 'succeeded'
      | 'failed'
      | 'dead'
      | 'cancelled'
      | 'breaker';
    /** @description Something that happened to a task. */
    TaskEvent: {
      /** @description Resume after this event with it. */
      cursor: string;
      type: components['schemas']['TaskEventType'];
      /** @description When it happened. */
      at: components['schemas']['Timestamp'];
      /** @description The queue of the task. */
      queue: components['schemas']['QueueName'];
      /** @description The task. */
      task_id: components['schemas']['Ulid'];
      /** @description The handler it names. */
      handler_ref: string;
      /** @description The attempt; 0 before the first. */
      attempt: number;
      /** @description Of `failed`, `dead` and `cancelled`: the kind of failure. */
      error_type?: string;
      /** @description Of `failed`, `dead` and `cancelled`: what happened. */
      message?: string;
      /** @description Of `failed`: when the task runs again; null if it does not. */
      next_attempt_at?: components['schemas']['NullableTimestamp'];
      /** @description Of `dead`: why there is no further attempt. */
      dead_reason?: string;
      /** @description Of `progress`: how far the work is. */
      progress?: components['schemas']['Progress'];
      /**
       * @description Of `breaker`: its state.
       * @enum {string}
       */
      state?: 'closed' | 'open' | 'half_open';
      /** @description Of `breaker`: when tasks are tried again; null if it is closed. */
      next_probe_at?: components['schemas']['NullableTimestamp'];
    };
    /**
     * @description `paused`: nothing is started. `no_worker`: a task of a pull queue has been due for more than
     *     a second, and no worker was seen in the last 60 seconds. Otherwise `running`.
     * @enum {string}
     */
    QueueState: 'running' | 'paused' | 'no_worker';
    /** @description The circuit breaker of one handler, the worst that any server sees. */
    HandlerBreaker: {
      /** @description The handler. */
      handler_ref: components['schemas']['HandlerRef'];
      /**
       * @description `open`: its tasks wait. `half_open`: three of them are tried, and decide.
       * @enum {string}
       */
      state: 'closed' | 'open' | 'half_open';
      /** @description When tasks are tried again, or since when; null if it is closed. */
      next_probe_at: components['schemas']['NullableTimestamp'];
    };
    /**
     * @description The name of a schedule, unique in its queue.
     * @example nightly-report
     */
    ScheduleName: string;
    /**
     * @description The task that a schedule submits. As in a submit, with the same
     *     defaults, but without id and times.
     */
    ScheduledTask: {
      /** @description Names the handler. */
      handler_ref: components['schemas']['HandlerRef'];
      /**
       * @description The payload in base64, as in a submit.
       * @example e30=
       */
      payload?: string;
      /**
       * @description The media type of the payload.
       * @example application/json
       */
      payload_content_type?: string;
      /** @description As in a submit. */
      headers?: components['schemas']['TaskHeaders'];
      /** @description Higher is claimed first. */
      priority?: number;
      /**
       * @description As in a submit.
       * @example acme
       */
      group_key?: string;
      /** @description After this many attempts the task is DEAD; instead of the queue's limit. */
      max_attempts?: number;
      /** @description The delay between its attempts; instead of the queue's. */
      backoff?: components['schemas']['TaskBackoff'];
      /**
       * @description How long an attempt may take; instead of the callback's. Workers of a pull queue get it
       *     with the task and keep to it.
       */
      timeout_ms?: number;
      /** @description How long the task is kept after its end; instead of the queue's retention. */
      retain_ms?: number;
      /**
       * @description Only claims that name all of these labels get the task. Callbacks ignore them.
       * @example [
       *       "gpu",
       *       "eu"
       *     ]
       */
      labels?: components['schemas']['Label'][];
      /** @description As in a submit. */
      depends_on?: components['schemas']['DependsOn'];
    };
    /**
     * @description A schedule. Exactly one of `cron` and `every_ms`. The read-only fields of a schedule may be sent
     *     back as they were read; any other value is 422 INVALID_SCHEDULE.
     */
    ScheduleInput: {
      cron?: components['schemas']['CronExpression'];
      every_ms?: components['schemas']['ScheduleInterval'];
      /** @default UTC */
      timezone?: components['schemas']['TimeZone'];
      /** @description What to submit. */
      task: components['schemas']['ScheduledTask'];
      /** @default skip */
      overlap?: components['schemas']['ScheduleOverlap'];
      /** @default last */
      catch_up?: components['schemas']['ScheduleCatchUp'];
      /** @default 0 */
      jitter_ms?: components['schemas']['ScheduleJitter'];
      /** @default  */
      description?: components['schemas']['ScheduleDescription'];
      /** @description Read-only. If given, the name in the path. */
      name?: components['schemas']['ScheduleName'];
      /** @description Read-only. If given, the queue in the path. */
      queue?: components['schemas']['QueueName'];
      /** @description Read-only. If given, the current value. */
      next_run_at?: components['schemas']['NullableTimestamp'];
      /** @description Read-only. If given, the current value. */
      last_run_at?: components['schemas']['NullableTimestamp'];
      /** @description Read-only. If given, the current value. */
      last_task_id?: components['schemas']['Ulid'] | null;
      /** @description Read-only. If given, the current value (false for a new schedule). */
      paused?: boolean;
      /** @description Read-only. If given, the current value. */
      version?: number;
    } & (unknown | unknown);
    /**
     * @description Five fields: minute, hour, day of the month, month, day of the week; or six with seconds first.
     * @example *\/5 * * * *
     * @example 0 9 * * MON-FRI
     */
    CronExpression: string;
    /**
     * @description Milliseconds from one run to the next, counted from the write of the schedule.
     * @example 60000
     */
    ScheduleInterval: number;
    /**
     * @description The IANA time zone of `cron`.
     * @example UTC
     * @example Europe/Berlin
     */
    TimeZone: string;
    /**
     * @description `skip`: a run is left out while a task of this schedule is PENDING or IN_FLIGHT.
     * @enum {string}
     */
    ScheduleOverlap: 'allow' | 'skip';
    /**
     * @description What to do about times that passed while no server ran: nothing, run once for the last of
     *     them, or run for all of them, at most the last 100.
     * @enum {string}
     */
    ScheduleCatchUp: 'none' | 'last' | 'all';
    /** @description Each task is due up to this many milliseconds later, by chance. */
    ScheduleJitter: number;
    /** @description For people. */
    ScheduleDescription: string;
    /** @description A schedule and its state. It has `cron` or `every_ms`, as it was written. */
    Schedule: {
      /** @description The schedule's name. */
      name: components['schemas']['ScheduleName'];
      /** @description The queue that its tasks go to. */
      queue: components['schemas']['QueueName'];
      cron?: components['schemas']['CronExpression'];
      every_ms?: components['schemas']['ScheduleInterval'];
      timezone: components['schemas']['TimeZone'];
      /** @description What it submits. */
      task: components['schemas']['ScheduledTask'];
      overlap: components['schemas']['ScheduleOverlap'];
      catch_up: components['schemas']['ScheduleCatchUp'];
      jitter_ms: components['schemas']['ScheduleJitter'];
      description: components['schemas']['ScheduleDescription'];
      /** @description The next time, without jitter; null while paused. */
      next_run_at: components['schemas']['NullableTimestamp'];
      /** @description The time of the last run that submitted a task. */
      last_run_at: components['schemas']['NullableTimestamp'];
      /** @description The last task that it submitted. */
      last_task_id: components['schemas']['Ulid'] | null;
      /** @description Whether it is paused. */
      paused: boolean;
      /** @description 1 for a new schedule, one more with each write. */
      version: number;
    };
    /** @description One page of schedules. */
    ScheduleList: {
      /** @description By name, without `task.payload`. */
      schedules: components['schemas']['Schedule'][];
      /** @description The `cursor` of the next page; `""` on the last one. */
      next_cursor: string;
    };
    /** @description The history of a queue. */
    QueueMetrics: {
      /**
       * @description The length of a step in seconds.
       * @enum {integer}
       */
      step_s: 10 | 60 | 900;
      /** @description One for each step, oldest first. */
      points: components['schemas']['QueueMetricsPoint'][];
    };
    /** @description One step. */
    QueueMetricsPoint: {
      /** @description When the step began. */
      ts: components['schemas']['Timestamp'];
      /** @description Tasks that were stored. */
      submitted: number;
      /** @description Tasks that succeeded. */
      succeeded: number;
      /** @description Attempts that failed. */
      failed: number;
      /** @description Tasks that died, cancelled ones included. */
      dead: number;
      /** @description Tasks that were cancelled. */
      cancelled: number;
      /** @description PENDING tasks at its end; null if that is unknown. */
      pending: number | null;
      /** @description IN_FLIGHT tasks at its end; null if that is unknown. */
      in_flight: number | null;
      /**
       * @description From the submit, or the due time of a delayed task that this server accepted, to the start
       *     of the first attempt.
       */
      wait_ms: components['schemas']['Percentiles'];
      /** @description How long attempts ran. */
      run_ms: components['schemas']['Percentiles'];
    };
    /** @description Percentiles in milliseconds, within 5 %; null where nothing was measured. */
    Percentiles: {
      /** @description Half of them took no longer. */
      p50: number | null;
      /** @description 95 % of them took no longer. */
      p95: number | null;
      /** @description 99 % of them took no longer. */
      p99: number | null;
    };
    /** @description Summary of a queue. */
    QueueSummary: {
      /** @description Whether claiming is stopped. */
      paused: boolean;
      /** @description As in stats. */
      pending: number;
      /** @description PENDING tasks that wait for their dependencies. */
      blocked?: number;
      /** @description PENDING tasks that are suspended. */
      suspended?: number;
      /** @description As in stats. */
      in_flight: number;
      /** @description As in stats. */
      dlq_depth: number;
      /** @description As in stats. */
      delayed?: number;
      /** @description As in stats. */
      oldest_pending_age_ms: number;
      state?: components['schemas']['QueueState'];
      /** @description As in stats. */
      breakers?: components['schemas']['HandlerBreaker'][];
      /** @description Where its tasks go; null for a pull queue. */
      callback_url: string | null;
      /**
       * @description The worst of the circuit breakers, as this server sees them. `open`: tasks of a handler failed and rest for a while; `half_open`: a few are tried.
       * @enum {string}
       */
      breaker?: 'closed' | 'half_open' | 'open';
      /** @description The config's version. */
      version: number;
      /** @description When the config was last written. */
      updated_at: components['schemas']['Timestamp'];
    };
    /** @description One queue. */
    QueueListItem: {
      /** @description The queue's name. */
      name: components['schemas']['QueueName'];
      /** @description Summary. */
      summary: components['schemas']['QueueSummary'];
    };
    /** @description Queues by name. */
    QueueList: components['schemas']['QueueListItem'][];
    /**
     * @description The name of a secret in the server's secrets file. It must exist and be open to this queue.
     *     Values never pass through this API.
     * @example payments-token
     */
    SecretRef: string;
    /** @description No credentials. */
    NoAuth: {
      /**
       * @description No credentials.
       * @constant
       */
      type: 'none';
    };
    /** @description `Authorization: Bearer <secret>`. */
    BearerAuth: {
      /**
       * @description A bearer token.
       * @constant
       */
      type: 'bearer';
      secret_ref: components['schemas']['SecretRef'];
    };
    /** @description `Authorization: Basic`; the secret is `user:password`. */
    BasicAuth: {
      /**
       * @description User and password.
       * @constant
       */
      type: 'basic';
      secret_ref: components['schemas']['SecretRef'];
    };
    /** @description The secret as the value of a header. */
    HeaderAuth: {
      /**
       * @description A header of your choice.
       * @constant
       */
      type: 'header';
      /**
       * @description The header's name. Not one that the server sets itself: hop-by-hop headers, `host`,
       *     `content-*`, `webhook-*`, `x-queue-*`.
       * @example X-Api-Key
       */
      name: string;
      secret_ref: components['schemas']['SecretRef'];
    };
    /** @description Credentials that the server sends to the callback. */
    CallbackAuth:
      | components['schemas']['NoAuth']
      | components['schemas']['BearerAuth']
      | components['schemas']['BasicAuth']
      | components['schemas']['HeaderAuth'];
    /** @description Signs each callback. */
    SigningInput: {
      /**
       * @description The signature scheme.
       * @default standard_webhooks
       * @enum {string}
       */
      scheme?: 'standard_webhooks';
      /**
       * @description Secrets of the form `whsec_` and base64. With several, each request carries a signature
       *     of each: name old and new while you rotate.
       */
      secret_refs: components['schemas']['SecretRef'][];
    };
    /** @description Signs each callback. */
    Signing: WithRequired<components['schemas']['SigningInput'], 'scheme' | 'secret_refs'>;
    /**
     * @description Where and how tasks are delivered. `url` is required, except with `protocol: pull`, which
     *     takes none.
     */
    CallbackInput: {
      /**
       * @description An absolute `http` or `https` URL on the server's allowlist, without user and password;
       *     with `protocol: grpc`, `grpc://host:port` or `grpcs://host:port` for TLS.
       *     No scheme or too long is INVALID_CONFIG; any other fault, also one that does not parse,
       *     is CALLBACK_URL_NOT_ALLOWED. If the allowlist shrinks later, the queue is held and its
       *     tasks wait.
       * @example https://handlers.example.org/payments
       */
      url?: string;
      /**
       * @description `http`: the server calls `url`. `grpc`: it calls `queue.v1.Handler/Execute` there. `pull`:
       *     workers ask for tasks with `tasks:claim`.
       * @default http
       * @enum {string}
       */
      protocol?: 'http' | 'grpc' | 'pull';
      /**
       * @description From name resolution to the last byte of the answer.
       * @default 30000
       */
      timeout_ms?: number;
      /**
       * @description For the connection alone.
       * @default 5000
       */
      connect_timeout_ms?: number;
      /**
       * @description The lease after a 202 with `X-Queue-Async`.
       * @default 3600000
       */
      async_timeout_ms?: number;
      /**
       * @description Credentials that the server sends to the callback.
       * @default {
       *       "type": "none"
       *     }
       */
      auth?: components['schemas']['CallbackAuth'];
      /**
       * @description Signs each callback; null sends it unsigned.
       * @default null
       */
      signing?: components['schemas']['SigningInput'] | null;
      /**
       * @description Keep the JSON body of a 2xx answer as the task's `result`, up to 64 KiB.
       * @default false
       */
      keep_result?: boolean;
    };
    /** @description Where and how tasks are delivered, with every default filled in. */
    Callback: WithRequired<
      components['schemas']['CallbackInput'],
      | 'protocol'
      | 'timeout_ms'
      | 'connect_timeout_ms'
      | 'async_timeout_ms'
      | 'auth'
      | 'signing'
      | 'keep_result'
    > & {
      /** @description Signs each callback; null sends it unsigned. */
      signing: components['schemas']['Signing'] | null;
    };
    /** @description When and how often a failed attempt is repeated. */
    RetryInput: {
      /**
       * @description After this many the task is DEAD.
       * @default 15
       */
      max_attempts?: number;
      /**
       * @description The delay after the first failure.
       * @default 1000
       */
      initial_backoff_ms?: number;
      /**
       * @description The growth of the delay from one failure to the next.
       * @default 2
       */
      multiplier?: number;
      /**
       * @description The longest delay.
       * @default 3600000
       */
      max_backoff_ms?: number;
      /**
       * @description Statuses to retry that would otherwise end the task. None may be in `dead_statuses`.
       * @default []
       */
      retry_statuses?: components['schemas']['FailureStatus'][];
      /**
       * @description Statuses that end the task at once and would otherwise be retried.
       * @default []
       */
      dead_statuses?: components['schemas']['FailureStatus'][];
    };
    /** @description An HTTP status that is not a success. */
    FailureStatus: number;
    /** @description The retry policy with every default filled in. */
    Retry: WithRequired<
      components['schemas']['RetryInput'],
      | 'max_attempts'
      | 'initial_backoff_ms'
      | 'multiplier'
      | 'max_backoff_ms'
      | 'retry_statuses'
      | 'dead_statuses'
    >;
    /** @description Limits of the queue. */
    LimitsInput: {
      /**
       * @description The largest decoded payload; 8 MiB is the server's ceiling.
       * @default 1048576
       */
      max_payload_bytes?: number;
      /**
       * @description Tasks that run at the same time.
       * @default 64
       */
      max_in_flight?: number;
      /**
       * @description Tasks of one `group_key` that run at the same time; 0 is no limit. With `ordering.mode:
       *     group` it is 1.
       * @default 0
       */
      max_in_flight_per_group?: number;
      /**
       * @description Starts per second; 0 is no limit.
       * @default 0
       */
      dispatch_per_second?: number;
      /**
       * @description Submitted tasks per second, beyond which 429 RATE_LIMITED; 0 is no limit.
       * @default 0
       */
      submit_per_second?: number;
      /**
       * @description PENDING tasks, beyond which submits are 429 RATE_LIMITED; 0 is no limit.
       * @default 0
       */
      max_pending?: number;
      /**
       * @description Steps that a task may record.
       * @default 1000
       */
      max_steps?: number;
    };
    /** @description Limits of the queue with every default filled in. */
    Limits: WithRequired<
      components['schemas']['LimitsInput'],
      | 'max_payload_bytes'
      | 'max_in_flight'
      | 'dispatch_per_second'
      | 'submit_per_second'
      | 'max_pending'
    >;
    /** @description How long a claim is kept. */
    LeaseInput: {
      /**
       * @description Added to the callback's timeout to make the lease.
       * @default 15000
       */
      grace_ms?: number;
    };
    /** @description How long a claim is kept, with every default filled in. */
    Lease: WithRequired<components['schemas']['LeaseInput'], 'grace_ms'>;
    /** @description How long finished tasks are kept. */
    RetentionInput: {
      /**
       * @description How long SUCCEEDED tasks are kept; 0 keeps them forever.
       * @default 86400000
       */
      succeeded_ms?: number;
      /**
       * @description How long DEAD tasks are kept; 0 keeps them until they are purged.
       * @default 0
       */
      dead_ms?: number;
    };
    /** @description How long finished tasks are kept, with every default filled in. */
    Retention: WithRequired<components['schemas']['RetentionInput'], 'succeeded_ms' | 'dead_ms'>;
    /**
     * @description Pauses the tasks of a handler while it keeps failing; other handlers of the queue run on.
     *     Waiting uses no attempts. A pull queue has none unless this is given.
     */
    CircuitBreakerInput: {
      /**
       * @description Whether it is used.
       * @default true
       */
      enabled?: boolean;
      /**
       * @description The share of failed calls that opens it.
       * @default 0.7
       */
      failure_ratio?: number;
      /**
       * @description Calls in the window below which it never opens.
       * @default 10
       */
      min_requests?: number;
      /**
       * @description The window over which calls are counted.
       * @default 30000
       */
      window_ms?: number;
      /**
       * @description How long it stays open before three probes are sent.
       * @default 30000
       */
      open_ms?: number;
    };
    /** @description The circuit breaker with every default filled in. */
    CircuitBreaker: WithRequired<
      components['schemas']['CircuitBreakerInput'],
      'enabled' | 'failure_ratio' | 'min_requests' | 'window_ms' | 'open_ms'
    >;
    /** @description Ordering guarantee. */
    OrderingInput: {
      /**
       * @description `none` guarantees no order; `group` runs the tasks of one `group_key` one after another, by
       *     due time, then id.
       * @default none
       * @enum {string}
       */
      mode?: 'none' | 'group';
    };
    /** @description Ordering guarantee, with every default filled in. */
    Ordering: WithRequired<components['schemas']['OrderingInput'], 'mode'>;
    /**
     * @description A queue's config. Only `callback.url` is required (for a pull queue, `callback.protocol`); what is left out gets its default. The
     *     read-only fields `name`, `paused`, `version`, `created_at` and `updated_at` may be sent back
     *     as they were read; any other value is 422 INVALID_CONFIG.
     */
    QueueConfigInput: {
      /**
       * @description Description shown to people.
       * @default
       */
      description?: string;
      /** @description Where and how tasks are delivered. */
      callback: components['schemas']['CallbackInput'];
      /**
       * @description When and how often a failed attempt is repeated.
       * @default {}
       */
      retry?: components['schemas']['RetryInput'];
      /**
       * @description Limits of the queue.
       * @default {}
       */
      limits?: components['schemas']['LimitsInput'];
      /**
       * @description How long a claim is kept.
       * @default {}
       */
      lease?: components['schemas']['LeaseInput'];
      /**
       * @description How long finished tasks are kept.
       * @default {}
       */
      retention?: components['schemas']['RetentionInput'];
      /**
       * @description Pauses deliveries while the target keeps failing.
       * @default {}
       */
      circuit_breaker?: components['schemas']['CircuitBreakerInput'];
      /**
       * @description Ordering guarantee.
       * @default {}
       */
      ordering?: components['schemas']['OrderingInput'];
      /** @description Read-only. If given, the name in the path. */
      name?: components['schemas']['QueueName'];
      /** @description Read-only. If given, the current value (false for a new queue). */
      paused?: boolean;
      /** @description Read-only. If given, the current value. */
      version?: number;
      /** @description Read-only. If given, the current value. */
      created_at?: components['schemas']['Timestamp'];
      /** @description Read-only. If given, the current value. */
      updated_at?: components['schemas']['Timestamp'];
    };
    /** @description A queue's config with every default filled in, and its read-only fields. */
    QueueConfig: {
      /** @description The queue's name. */
      name: components['schemas']['QueueName'];
      /** @description Whether claiming is stopped. Changed by `:pause` and `:resume` only. */
      paused: boolean;
      /** @description 1 for a new queue, one more with each write. The `ETag`. */
      version: number;
      /** @description When the queue was made. */
      created_at: components['schemas']['Timestamp'];
      /** @description When the config was last written. */
      updated_at: components['schemas']['Timestamp'];
      /** @description Description shown to people. */
      description: string;
      /** @description Where and how tasks are delivered. */
      callback: components['schemas']['Callback'];
      /** @description When and how often a failed attempt is repeated. */
      retry: components['schemas']['Retry'];
      /** @description Limits of the queue. */
      limits: components['schemas']['Limits'];
      /** @description How long a claim is kept. */
      lease: components['schemas']['Lease'];
      /** @description How long finished tasks are kept. */
      retention: components['schemas']['Retention'];
      /** @description Pauses deliveries while the target keeps failing. */
      circuit_breaker: components['schemas']['CircuitBreaker'];
      /** @description Ordering guarantee. */
      ordering: components['schemas']['Ordering'];
    };
    /** @description Result of a probe. */
    CallbackTestResult: {
      /** @description Whether the callback answered with 2xx. */
      delivered: boolean;
      /** @description Its status; null without an answer. */
      http_status: components['schemas']['NullableHttpStatus'];
      /** @description How long it took. */
      duration_ms: number;
      /** @description The kind of failure; null if delivered. */
      error_type: components['schemas']['ErrorType'] | null;
      /** @description What happened; null if delivered. */
      message: string | null;
    };
    /**
     * @description One action. `hash` is the SHA-256, in hex, of the record without `hash` in the canonical JSON
     *     of RFC 8785.
     */
    AuditRecord: {
      /** @description Sequence number across the whole server, without gaps. */
      seq: number;
      /** @description When the action was performed. */
      at: components['schemas']['Timestamp'];
      /** @description The principal. */
      principal: string;
      /**
       * @description The action.
       * @enum {string}
       */
      action:
        | 'redrive'
        | 'purge'
        | 'pause'
        | 'resume'
        | 'config_write'
        | 'delete'
        | 'cancel'
        | 'run_now'
        | 'update';
      /** @description The queue. */
      queue: components['schemas']['QueueName'];
      /**
       * @description The body of a redrive, purge or cancel of many tasks as sent. For an action on one task
       *     `ids` and what was sent with it. Null for other actions.
       *     For a job also `job`, its id.
       */
      selector: {
        [key: string]: unknown;
      } | null;
      /** @description Tasks that were changed; null for actions on the queue itself and at the start of a job. */
      count: number | null;
      /** @description The `hash` of the record before; 64 zeros for the first. */
      prev_hash: string;
      /** @description The record's own hash. */
      hash: string;
    };
    /** @description A page of the audit log. */
    AuditPage: {
      /** @description Newest first. */
      records: components['schemas']['AuditRecord'][];
      /** @description The `cursor` of the next page; `""` on the last one. */
      next_cursor: string;
    };
    /** @description What came of the work. Every field is optional. */
    CompleteTaskRequest: {
      /**
       * @description Any JSON, at most 64 KiB; kept with the task.
       * @example {
       *       "invoice": 4711
       *     }
       */
      result?: unknown;
      /** @description The lease token, instead of the header. */
      lease_token?: components['schemas']['LeaseToken'];
      /**
       * @description The task is not done but suspended: its lease ends, no attempt is used, and it is
       *     claimed again when the condition holds.
       */
      suspend?: components['schemas']['Suspension'];
      /** @description Steps that are recorded in the same commit. */
      steps?: components['schemas']['StepInput'][];
    };
    /** @description The reason, and whether to retry. Every field is optional. */
    FailTaskRequest: {
      /**
       * @description The kind of failure, a known name or one of your own.
       * @default INTERNAL
       */
      error_type?: components['schemas']['ErrorType'];
      /**
       * @description What happened. Cut to 1 KiB.
       * @default
       */
      message?: string;
      /**
       * @description `false` makes the task DEAD at once.
       * @default true
       */
      retry?: boolean;
      /**
       * @description `true`: the work could not be done yet; the attempt does not count. Without effect
       *     beside `retry: false`.
       * @default false
       */
      defer?: boolean;
      /** @description Raises the delay before the next attempt. More than one hour is taken as one hour. */
      retry_after_ms?: number;
      /** @description The delay before the next attempt, instead of the backoff. */
      delay_ms?: number;
      /** @description Details such as a stack trace, kept as the attempt's `response_snippet`. Cut to 2 KiB. */
      stack?: string;
    };
    /** @description How long to continue. */
    ExtendTaskRequest: {
      /** @description The lease runs at least this long from now. */
      extend_ms: number;
      /** @description How far the work is; replaces what was reported before. */
      progress?: {
        /** @description From 0 to 100; null or absent if unknown. */
        percent?: number | null;
        /** @description What is being done. At most 1 KiB. */
        message?: string;
      };
    };
    /** @description How many tasks to claim, for whom and for how long. */
    ClaimRequest: {
      /** @description A name for this worker, shown in the list of workers. */
      worker: string;
      /**
       * @description Claim at most this many tasks.
       * @default 1
       */
      limit?: number;
      /**
       * @description Wait this long for a task if none is due.
       * @default 0
       */
      wait_ms?: number;
      /**
       * @description How long each lease lasts unless it is extended.
       * @default 30000
       */
      lease_ms?: number;
      /** @description Claim only tasks with one of these `handler_ref`s; absent takes any. */
      handlers?: components['schemas']['HandlerRef'][];
      /** @description Claim only tasks all of whose labels are among these; absent takes tasks without labels. */
      labels?: components['schemas']['Label'][];
    };
    /** @description Claimed tasks. */
    ClaimResult: {
      /** @description In the order of their claim; empty when the wait is over. */
      tasks: components['schemas']['ClaimedTask'][];
    };
    /** @description A full task with the lease of its claim. */
    ClaimedTask: components['schemas']['Task'] & {
      /** @description What settling and extending ask for. */
      lease_token: components['schemas']['LeaseToken'];
      /** @description Recorded steps, in the order of recording; absent if none. */
      steps?: components['schemas']['Step'][];
      /** @description Unread signals, in the order of arrival; absent if none. */
      signals?: components['schemas']['Signal'][];
      /**
       * @description Tasks it depends on, in the order given; absent if none. Results of more than 256 KiB
       *     together are left out.
       */
      dependencies?: components['schemas']['EndedTask'][];
      /** @description Tasks that the last suspension waited for; absent if none. */
      children?: components['schemas']['EndedTask'][];
      /** @description What ended the last suspension; absent if there was none. */
      woken_by?: components['schemas']['WokenBy'];
    };
    /** @description The tasks to settle. */
    SettleTasksRequest: {
      /** @description At most 100; an empty list does nothing. */
      items: components['schemas']['SettleItem'][];
    };
    /**
     * @description How one task ended. `error_type`, `message`, `retry`, `defer` and `retry_after_ms` are those
     *     of `:fail` and count only with `outcome: fail`.
     */
    SettleItem: {
      /** @description The task's id. One that cannot be an id is TASK_NOT_FOUND. */
      id: string;
      /** @description The token of its claim. */
      lease_token: components['schemas']['LeaseToken'];
      /**
       * @description Whether the attempt succeeded, failed, or the task is suspended.
       * @enum {string}
       */
      outcome: 'complete' | 'fail' | 'suspend';
      /** @description The kind of failure. */
      error_type?: components['schemas']['ErrorType'];
      /** @description What happened. Cut to 1 KiB. */
      message?: string;
      /** @description `false` makes the task DEAD at once. */
      retry?: boolean;
      /** @description `true`: the attempt does not count. */
      defer?: boolean;
      /** @description Raises the delay before the next attempt. */
      retry_after_ms?: number;
      /** @description The delay before the next attempt, instead of the backoff. */
      delay_ms?: number;
      /** @description Details such as a stack trace. Cut to 2 KiB. */
      stack?: string;
      /** @description Any JSON, at most 64 KiB; kept with the task. Counts with `complete`. */
      result?: unknown;
      /** @description What the task waits for, with `suspend`. */
      suspend?: components['schemas']['Suspension'];
      /**
       * @description Steps that are recorded in the same commit, with `complete` and `suspend`. If they cannot
       *     be recorded, the task is not settled.
       */
      steps?: components['schemas']['StepInput'][];
    };
    /** @description The result of an item that was settled, or was before. */
    SettleItemDone: {
      /** @description The item's place in the request, from 0. */
      index: number;
      /**
       * @description As the single call would have answered.
       * @constant
       */
      status: 200;
      /** @description The task. */
      envelope: components['schemas']['Envelope'];
    };
    /** @description The result of one item; `envelope` on success, `error` on failure. */
    SettleItemResult:
      components['schemas']['SettleItemDone'] | components['schemas']['BatchItemRejected'];
    /** @description One result per item, in the order of the request. */
    SettleTasksResult: components['schemas']['SettleItemResult'][];
    /** @description The workers of a queue. */
    WorkerList: {
      /** @description Seen in the last 10 minutes, most recently seen first. */
      workers: components['schemas']['Worker'][];
    };
    /** @description One worker of a pull queue. */
    Worker: {
      /** @description The name it claims with. */
      worker: string;
      /** @description Who its token stands for. */
      principal: string;
      /** @description Where its last claim came from; null in process. */
      remote_ip: string | null;
      /** @description When it last claimed, extended or settled. */
      last_seen_at: components['schemas']['Timestamp'];
      /** @description Tasks that it holds. */
      in_flight: number;
      /** @description Tasks that it claimed. */
      claimed: number;
      /** @description Tasks that it completed. */
      completed: number;
      /** @description Attempts that it failed, expired leases included. */
      failed: number;
    };
    /** @description The process is up. */
    LivenessResult: {
      /**
       * @description Always `ok`.
       * @constant
       */
      status: 'ok';
    };
    /** @description One entry per dependency. */
    ReadinessChecks: {
      /**
       * @description The task store answers.
       * @constant
       */
      storage: 'ok';
    };
    /** @description The server can take work. */
    ReadinessResult: {
      /**
       * @description Always `ready`.
       * @constant
       */
      status: 'ready';
      /** @description What was probed. */
      checks: components['schemas']['ReadinessChecks'];
    };
    /** @description An OpenAPI 3.1 document. */
    OpenapiDocument: {
      /** @description The OpenAPI version. */
      openapi: string;
      /** @description Title, version and description. */
      info: {
        [key: string]: unknown;
      };
      /** @description Every route of the server. */
      paths: {
        [key: string]: unknown;
      };
    } & {
      [key: string]: unknown;
    };
    /** @description One thing that is wrong with a request. */
    FieldError: {
      /**
       * @description A JSON pointer (RFC 6901) into the body, `""` for the body as a whole. For a query
       *     parameter, header or path parameter: `/` and its name.
       */
      pointer: string;
      /** @description What is wrong there. */
      message: string;
    };
    /** @description An error by RFC 9457. */
    Problem: {
      /**
       * Format: uri-reference
       * @description `urn:millrace:problem:` and the code in lower case, with `-` for `_`.
       */
      type: string;
      /** @description The code in words; the same for every error with this code. */
      title: string;
      /** @description The HTTP status again. */
      status: number;
      /** @description What is wrong with this request and what to do. */
      detail: string;
      /**
       * Format: uri-reference
       * @description Names this one answer; the server's log has the same.
       */
      instance: string;
      /** @description The machine code. Decide by this. */
      code: components['schemas']['ErrorCode'];
      /**
       * @description `CANCELLED` in a LEASE_LOST because an operator cancelled the task. Else absent.
       * @example CANCELLED
       */
      reason?: string;
      /** @description Each place in the request that is wrong, where that can be said. */
      errors?: components['schemas']['FieldError'][];
    };
    /**
     * @description The closed list of machine codes; see `x-error-codes`.
     * @enum {string}
     */
    ErrorCode:
      | 'UNAUTHENTICATED'
      | 'FORBIDDEN'
      | 'NOT_FOUND'
      | 'QUEUE_NOT_FOUND'
      | 'TASK_NOT_FOUND'
      | 'SCHEDULE_NOT_FOUND'
      | 'JOB_NOT_FOUND'
      | 'METHOD_NOT_ALLOWED'
      | 'ID_CONFLICT'
      | 'JOB_FINISHED'
      | 'QUEUE_NOT_EMPTY'
      | 'LEASE_LOST'
      | 'QUEUE_NOT_PULL'
      | 'BACKUP_UNAVAILABLE'
      | 'TASK_FINISHED'
      | 'TASK_ENDED'
      | 'TASK_NOT_PENDING'
      | 'STALE_CURSOR'
      | 'PRECONDITION_FAILED'
      | 'PAYLOAD_TOO_LARGE'
      | 'STEP_TOO_LARGE'
      | 'UNSUPPORTED_MEDIA_TYPE'
      | 'INVALID_TASK'
      | 'INVALID_FLOW'
      | 'TOO_MANY_STEPS'
      | 'BATCH_TOO_LARGE'
      | 'RESULT_TOO_LARGE'
      | 'INVALID_SELECTOR'
      | 'INVALID_CLAIM'
      | 'INVALID_CONFIG'
      | 'CALLBACK_URL_NOT_ALLOWED'
      | 'INVALID_SCHEDULE'
      | 'INVALID_QUERY'
      | 'RATE_LIMITED'
      | 'SIGNALS_FULL'
      | 'INTERNAL'
      | 'STORAGE_UNAVAILABLE';
  };
  responses: {
    /** @description How many tasks were affected or, with `dry_run`, would be. */
    Selected: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['SelectorResult'];
      };
    };
    /** @description The whole config. */
    Config: {
      headers: {
        ETag: components['headers']['ETag'];
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['QueueConfig'];
      };
    };
    /** @description The bearer token is missing, unknown or expired. */
    Unauthenticated: {
      headers: {
        'WWW-Authenticate': components['headers']['WwwAuthenticate'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The principal lacks the role on this queue. */
    Forbidden: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The queue is not configured, or the name cannot be a queue's. */
    QueueNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The schedule. */
    Schedule: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['Schedule'];
      };
    };
    /** @description The queue or the schedule does not exist. */
    ScheduleNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The job. */
    Job: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['JobResult'];
      };
    };
    /** @description No job has this id. */
    JobNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The job has ended. */
    JobFinished: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description No task has this id. */
    TaskNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The id is used elsewhere, or the parent cannot have a child. */
    SubmitConflict: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The id is in use in another queue. */
    IdConflict: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The lease is gone; nothing was changed. Stop the work. */
    LeaseLost: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The task has ended. */
    TaskEnded: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description There is no such queue, or no task holds the key. */
    QueueOrTaskNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The body, a result or all steps together are too large. Nothing was recorded. */
    StepTooLarge: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The body breaks a rule, or a result or a step cannot be stored. */
    InvalidCompletion: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The body breaks a rule, or the task has too many steps. */
    InvalidSteps: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The flow breaks a rule; `errors` says where. Nothing was stored. */
    InvalidFlow: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The task has 100 unread signals, or a rate limit is reached. */
    SignalsFull: {
      headers: {
        'Retry-After': components['headers']['RetryAfter'];
        RateLimit: components['headers']['RateLimit'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The queue delivers by callback and cannot be claimed from. */
    QueueNotPull: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The store has no backup of its own, or its log does not reach back that far. */
    BackupUnavailable: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The body is not JSON or breaks a rule; `errors` says where. Nothing was done. */
    InvalidClaim: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The task has SUCCEEDED or is DEAD for another reason; nothing was changed. */
    TaskFinished: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The task is not PENDING; nothing was changed. */
    TaskNotPending: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The queue still has pending, in-flight or dead tasks. */
    QueueNotEmpty: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The cursor cannot be used any more. Start again without one. */
    StaleCursor: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The config has changed since, or the queue does not exist. Read it again. */
    PreconditionFailed: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The decoded payload exceeds the queue's limit, or the body that of the operation. */
    PayloadTooLarge: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The body is not `application/json`. */
    UnsupportedMediaType: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The body is not JSON or breaks a rule; `errors` says where. */
    InvalidTask: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The body is not a JSON array, or has too many items. Bad items are not refused here. */
    InvalidBatch: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The selector is not JSON or breaks a rule; `errors` says where. Nothing was done. */
    InvalidTaskSelector: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The selector is not JSON or breaks a rule; `errors` says where. Nothing was done. */
    InvalidSelector: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The config, its callback URL or a query parameter is refused. Nothing was written. */
    InvalidConfig: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The schedule breaks a rule; `errors` says where. Nothing was written. */
    InvalidSchedule: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description A query parameter is unknown, repeated or has a bad value. */
    InvalidQuery: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description A rate limit or `max_pending` is reached, or the server sheds load. Retry later. */
    RateLimited: {
      headers: {
        'Retry-After': components['headers']['RetryAfter'];
        RateLimit: components['headers']['RateLimit'];
        'RateLimit-Policy': components['headers']['RateLimitPolicy'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description An internal error of the server. The log has the details under `instance`. */
    Internal: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description Storage cannot be reached. It is safe to repeat a submit with the same id. */
    StorageUnavailable: {
      headers: {
        'Retry-After': components['headers']['RetryAfter'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
  };
  parameters: {
    /**
     * @description The queue's name.
     * @example payments.capture
     */
    Queue: components['schemas']['QueueName'];
    /**
     * @description The queue's name. One that cannot be a queue's is 422 INVALID_CONFIG.
     * @example payments.capture
     */
    ConfiguredQueue: components['schemas']['QueueName'];
    /**
     * @description The task's id, in upper or lower case.
     * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
     */
    TaskId: components['schemas']['InputUlid'];
    /**
     * @description The flow's id, in upper or lower case.
     * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6F
     */
    FlowId: components['schemas']['InputUlid'];
    /**
     * @description The job's id, in upper or lower case.
     * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
     */
    JobId: components['schemas']['InputUlid'];
    /**
     * @description The schedule's name.
     * @example nightly-report
     */
    ScheduleName: components['schemas']['ScheduleName'];
    /**
     * @description The schedule's name. One that cannot be a schedule's is 422 INVALID_SCHEDULE.
     * @example nightly-report
     */
    WrittenScheduleName: components['schemas']['ScheduleName'];
    /**
     * @description The token that the callback carried. Missing, empty or longer than 256 characters is 422
     *     INVALID_TASK; any other that does not hold the task's lease is 409 LEASE_LOST.
     * @example l1.7.Zk3vQm9X
     */
    LeaseToken: components['schemas']['LeaseToken'];
    /**
     * @description The token of the task's lease; without it the caller must be a submitter.
     * @example l1.7.Zk3vQm9X
     */
    OptionalLeaseToken: components['schemas']['LeaseToken'];
    /**
     * @description The token that the callback carried, unless the body has `lease_token`. Missing, empty or
     *     longer than 256 characters is 422 INVALID_TASK; any other that does not hold the task's
     *     lease is 409 LEASE_LOST.
     * @example l1.7.Zk3vQm9X
     */
    BodyLeaseToken: components['schemas']['LeaseToken'];
    /**
     * @description Entries per page. More than 500 is taken as 500.
     * @example 100
     */
    Limit: number;
    /**
     * @description Only tasks in this status; repeat it for several. Without it, in any status.
     * @example [
     *       "PENDING",
     *       "IN_FLIGHT"
     *     ]
     */
    TaskStatuses: components['schemas']['TaskStatus'][];
    /**
     * @description The `next_cursor` of the page before. Absent or empty starts at the first page.
     * @example c1.AZWq0Lk3.h7Rk2v9Q
     */
    Cursor: string;
  };
  requestBodies: never;
  headers: {
    /**
     * @description `true` when the id was used before or the unique key is held, and nothing new was stored.
     *     Else absent.
     * @example true
     */
    IdempotentReplayed: 'true';
    /**
     * @description The config's `version`, quoted. Send it as `If-Match`.
     * @example "3"
     */
    ETag: string;
    /**
     * @description The version of the server.
     * @example millrace/0.1.0
     */
    Server: string;
    /**
     * @description Seconds to wait before the next try.
     * @example 5
     */
    RetryAfter: number;
    /**
     * @description What is left of the limit that was hit (`r`) and the seconds until there is more (`t`), by
     *     the IETF RateLimit header fields. The name is `queue`, `principal`, `pending`
     *     (`max_pending`) or `load` (the server sheds load).
     * @example "queue";r=0;t=1
     */
    RateLimit: string;
    /**
     * @description The limit that was hit: quota (`q`) and, for a rate, its window in seconds (`w`). Absent for
     *     `load`, which has no fixed quota.
     * @example "queue";q=100;w=1
     */
    RateLimitPolicy: string;
    /**
     * @description The scheme to use.
     * @example Bearer realm="millrace"
     */
    WwwAuthenticate: string;
  };
  pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
  streamEvents: {
    parameters: {
      query?: {
        /**
         * @description The same as the header, which wins.
         * @example 18244.0
         */
        cursor?: string;
        /**
         * @description The same as `cursor`.
         * @example 18244.0
         */
        after?: string;
        /**
         * @description Only events of this queue.
         * @example mail
         */
        queue?: components['schemas']['QueueName'];
        /**
         * @description Only events of these types; repeat it, or separate them by commas.
         * @example [
         *       "succeeded",
         *       "dead"
         *     ]
         */
        types?: string[];
      };
      header?: {
        /**
         * @description The id of the last event received; the stream goes on after it.
         * @example 18244.0
         */
        'Last-Event-ID'?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The stream; it stays open. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'text/event-stream': components['schemas']['TaskEventStream'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      410: components['responses']['StaleCursor'];
      422: components['responses']['InvalidQuery'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  listTasks: {
    parameters: {
      query?: {
        /**
         * @description Only tasks in this status; repeat it for several. Without it, in any status.
         * @example [
         *       "PENDING",
         *       "IN_FLIGHT"
         *     ]
         */
        status?: components['parameters']['TaskStatuses'];
        /**
         * @description Only tasks with this handler.
         * @example mail.send
         */
        handler_ref?: components['schemas']['HandlerRef'];
        /**
         * @description Only tasks of this flow.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6D
         */
        flow_id?: components['schemas']['InputUlid'];
        /**
         * @description Only tasks with this group key.
         * @example acme
         */
        group_key?: string;
        /**
         * @description Only tasks created at this time or later (`created_at`).
         * @example 2026-03-02T00:00:00Z
         */
        from?: components['schemas']['InputTimestamp'];
        /**
         * @description Only tasks created before this time (`created_at`); not after `from`, it selects none.
         * @example 2026-03-03T00:00:00Z
         */
        to?: components['schemas']['InputTimestamp'];
        /**
         * @description `newest` or `oldest` by `created_at`; `next` by `next_attempt_at`, which needs
         *     `status=PENDING` and no other status.
         * @example oldest
         */
        order?: 'newest' | 'oldest' | 'next';
        /**
         * @description Entries per page. Less than 1 is taken as 1, more than 500 as 500.
         * @example 100
         */
        limit?: number;
        /**
         * @description The `next_cursor` of the page before. Absent or empty starts at the first page.
         * @example c1.AZWq0Lk3.h7Rk2v9Q
         */
        cursor?: components['parameters']['Cursor'];
      };
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description One page. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['TaskPage'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      410: components['responses']['StaleCursor'];
      422: components['responses']['InvalidQuery'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  submitTask: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SubmitTaskRequest'];
      };
    };
    responses: {
      /** @description The task is stored, or was before. */
      202: {
        headers: {
          'Idempotent-Replayed': components['headers']['IdempotentReplayed'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SubmitResult'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      409: components['responses']['SubmitConflict'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidTask'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  countTasks: {
    parameters: {
      query?: {
        /**
         * @description Only tasks in this status; repeat it for several. Without it, in any status.
         * @example [
         *       "PENDING",
         *       "IN_FLIGHT"
         *     ]
         */
        status?: components['parameters']['TaskStatuses'];
        /**
         * @description Only tasks with this handler.
         * @example mail.send
         */
        handler_ref?: components['schemas']['HandlerRef'];
        /**
         * @description Only tasks of this flow.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6D
         */
        flow_id?: components['schemas']['InputUlid'];
        /**
         * @description Only tasks with this group key.
         * @example acme
         */
        group_key?: string;
        /**
         * @description Only tasks created at this time or later (`created_at`).
         * @example 2026-03-02T00:00:00Z
         */
        from?: components['schemas']['InputTimestamp'];
        /**
         * @description Only tasks created before this time (`created_at`); not after `from`, it selects none.
         * @example 2026-03-03T00:00:00Z
         */
        to?: components['schemas']['InputTimestamp'];
      };
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The count. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['TaskCount'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      422: components['responses']['InvalidQuery'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  submitBatch: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SubmitBatchRequest'];
      };
    };
    responses: {
      /** @description One result per item, in the order of the request. */
      207: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['BatchResult'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidBatch'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  getTask: {
    parameters: {
      query?: {
        /**
         * @description Wait this long for the end of the task, at most 60 seconds.
         * @example 30000
         */
        wait_ms?: number;
      };
      header?: {
        /**
         * @description The token of the caller's claim. Only needed with the role `worker`.
         * @example l1.7.Zk3vQm9X
         */
        'X-Queue-Lease-Token'?: string;
      };
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The task with its payload and attempts. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Task'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['TaskNotFound'];
      422: components['responses']['InvalidQuery'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  updateTask: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['UpdateTaskRequest'];
      };
    };
    responses: {
      /** @description The task as it is now. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Envelope'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['TaskNotFound'];
      409: components['responses']['TaskNotPending'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidTask'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  cancelTask: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        'application/json': components['schemas']['CancelTaskRequest'];
      };
    };
    responses: {
      /** @description The task is DEAD. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Envelope'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['TaskNotFound'];
      409: components['responses']['TaskFinished'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidTask'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  runTaskNow: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The task is due. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Envelope'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['TaskNotFound'];
      409: components['responses']['TaskNotPending'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  cancelTasks: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['CancelSelector'];
      };
    };
    responses: {
      200: components['responses']['Selected'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidTaskSelector'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  listDlq: {
    parameters: {
      query?: {
        /**
         * @description Only tasks whose `last_error.error_type` is this.
         * @example HTTP_5XX
         */
        error_type?: components['schemas']['ErrorType'];
        /**
         * @description Only tasks with this handler.
         * @example mail.send
         */
        handler_ref?: components['schemas']['HandlerRef'];
        /**
         * @description Only tasks that died at this time or later (`dead_at`).
         * @example 2026-03-02T00:00:00Z
         */
        from?: components['schemas']['InputTimestamp'];
        /**
         * @description Only tasks that died before this time (`dead_at`); not after `from`, it selects none.
         * @example 2026-03-03T00:00:00Z
         */
        to?: components['schemas']['InputTimestamp'];
        /**
         * @description Entries per page. More than 500 is taken as 500.
         * @example 100
         */
        limit?: components['parameters']['Limit'];
        /**
         * @description The `next_cursor` of the page before. Absent or empty starts at the first page.
         * @example c1.AZWq0Lk3.h7Rk2v9Q
         */
        cursor?: components['parameters']['Cursor'];
      };
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description One page. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['DlqPage'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      410: components['responses']['StaleCursor'];
      422: components['responses']['InvalidQuery'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  redriveDlq: {
    parameters: {
      query?: {
        /**
         * @description `true` starts a job and answers 202 at once. The job goes on after a restart, takes as
         *     long as it takes, and touches only tasks that were dead when it was created. Not with
         *     `dry_run`.
         * @example true
         */
        async?: boolean;
      };
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['RedriveSelector'];
      };
    };
    responses: {
      200: components['responses']['Selected'];
      202: components['responses']['Job'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidSelector'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  purgeDlq: {
    parameters: {
      query?: {
        /**
         * @description `true` starts a job and answers 202 at once. The job goes on after a restart, takes as
         *     long as it takes, and touches only tasks that were dead when it was created. Not with
         *     `dry_run`.
         * @example true
         */
        async?: boolean;
      };
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['PurgeSelector'];
      };
    };
    responses: {
      200: components['responses']['Selected'];
      202: components['responses']['Job'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidSelector'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  listDlqGroups: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The groups. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['DlqGroups'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  getQueueMetrics: {
    parameters: {
      query?: {
        /**
         * @description How far to go back, at most 30 days, as in `30m`, `48h` or `7d`.
         * @example 1h
         */
        since?: string;
        /**
         * @description The length of a step; by default the shortest that is retained for the whole time. A step
         *     that is not retained for so long is 422 INVALID_QUERY.
         * @example 1m
         */
        step?: '10s' | '1m' | '15m';
      };
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The history. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['QueueMetrics'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      422: components['responses']['InvalidQuery'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  listJobs: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The jobs. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['JobList'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  getJob: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The job's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['JobId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Job'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['JobNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  cancelJob: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The job's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['JobId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Job'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['JobNotFound'];
      409: components['responses']['JobFinished'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  getStats: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The counts of this moment. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Stats'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  listSchedules: {
    parameters: {
      query?: {
        /**
         * @description Schedules per page. More than 500 is taken as 500.
         * @example 100
         */
        limit?: number;
        /**
         * @description The `next_cursor` of the page before. Absent or empty starts at the first page.
         * @example c1.AZWq0Lk3.h7Rk2v9Q
         */
        cursor?: components['parameters']['Cursor'];
      };
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The schedules. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ScheduleList'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      410: components['responses']['StaleCursor'];
      422: components['responses']['InvalidQuery'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  getSchedule: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
        /**
         * @description The schedule's name.
         * @example nightly-report
         */
        schedule: components['parameters']['ScheduleName'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Schedule'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['ScheduleNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  putSchedule: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
        /**
         * @description The schedule's name. One that cannot be a schedule's is 422 INVALID_SCHEDULE.
         * @example nightly-report
         */
        schedule: components['parameters']['WrittenScheduleName'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ScheduleInput'];
      };
    };
    responses: {
      200: components['responses']['Schedule'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidSchedule'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  deleteSchedule: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
        /**
         * @description The schedule's name.
         * @example nightly-report
         */
        schedule: components['parameters']['ScheduleName'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The schedule is deleted. */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['ScheduleNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  runSchedule: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
        /**
         * @description The schedule's name.
         * @example nightly-report
         */
        schedule: components['parameters']['ScheduleName'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Schedule'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['ScheduleNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  pauseSchedule: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
        /**
         * @description The schedule's name.
         * @example nightly-report
         */
        schedule: components['parameters']['ScheduleName'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Schedule'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['ScheduleNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  resumeSchedule: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
        /**
         * @description The schedule's name.
         * @example nightly-report
         */
        schedule: components['parameters']['ScheduleName'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Schedule'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['ScheduleNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  pauseQueue: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The queue is paused. */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  resumeQueue: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The queue is running. */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  listQueues: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The queues, in the order of their names. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['QueueList'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  getQueueConfig: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Config'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  putQueueConfig: {
    parameters: {
      query?: {
        /**
         * @description Checks everything and writes nothing. The answer is the one the write would have given,
         *     without `ETag`.
         * @example true
         */
        validate_only?: boolean;
      };
      header?: {
        /**
         * @description Write only if the queue exists and its `ETag` is one of these; `*` asks only that it
         *     exists. A single version may stand without its quotes. Anything else is 412
         *     PRECONDITION_FAILED.
         * @example "3"
         */
        'If-Match'?: string;
      };
      path: {
        /**
         * @description The queue's name. One that cannot be a queue's is 422 INVALID_CONFIG.
         * @example payments.capture
         */
        queue: components['parameters']['ConfiguredQueue'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['QueueConfigInput'];
      };
    };
    responses: {
      200: components['responses']['Config'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      412: components['responses']['PreconditionFailed'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidConfig'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  deleteQueue: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The queue is gone. */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      409: components['responses']['QueueNotEmpty'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  testCallback: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description What the callback answered, or why it could not be reached. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['CallbackTestResult'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  backupQueues: {
    parameters: {
      query?: {
        /**
         * @description The commit of the backup that this one continues; absent for a full backup.
         * @example 1200
         */
        since_seq?: number;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The backup file. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/octet-stream': components['schemas']['BackupFile'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      409: components['responses']['BackupUnavailable'];
      422: components['responses']['InvalidQuery'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  listAudit: {
    parameters: {
      query?: {
        /**
         * @description Only records of this queue. 403 FORBIDDEN if the caller is not its admin.
         * @example payments.capture
         */
        queue?: components['schemas']['QueueName'];
        /**
         * @description Only records of this time or later (`at`).
         * @example 2026-03-02T00:00:00Z
         */
        from?: components['schemas']['InputTimestamp'];
        /**
         * @description Only records before this time (`at`).
         * @example 2026-03-03T00:00:00Z
         */
        to?: components['schemas']['InputTimestamp'];
        /**
         * @description Entries per page. More than 500 is taken as 500.
         * @example 100
         */
        limit?: components['parameters']['Limit'];
        /**
         * @description The `next_cursor` of the page before. Absent or empty starts at the first page.
         * @example c1.AZWq0Lk3.h7Rk2v9Q
         */
        cursor?: components['parameters']['Cursor'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description One page. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AuditPage'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      410: components['responses']['StaleCursor'];
      422: components['responses']['InvalidQuery'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  submitFlow: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['FlowRequest'];
      };
    };
    responses: {
      /** @description The flow is stored. */
      202: {
        headers: {
          'Idempotent-Replayed': components['headers']['IdempotentReplayed'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['FlowResult'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      409: components['responses']['SubmitConflict'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidFlow'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  getFlow: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The flow's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6F
         */
        flow_id: components['parameters']['FlowId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The flow. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['FlowGraph'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['TaskNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  recordSteps: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['RecordStepsRequest'];
      };
    };
    responses: {
      /** @description The steps as they are stored. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['StepRecords'];
        };
      };
      401: components['responses']['Unauthenticated'];
      404: components['responses']['TaskNotFound'];
      409: components['responses']['LeaseLost'];
      413: components['responses']['StepTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidSteps'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  sendSignal: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SendSignalRequest'];
      };
    };
    responses: {
      /** @description The signal is stored. */
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Signal'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['TaskNotFound'];
      409: components['responses']['TaskEnded'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidTask'];
      429: components['responses']['SignalsFull'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  sendQueueSignal: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SendQueueSignalRequest'];
      };
    };
    responses: {
      /** @description The signal is stored. */
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Signal'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueOrTaskNotFound'];
      409: components['responses']['TaskEnded'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidTask'];
      429: components['responses']['SignalsFull'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  getTaskRun: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The token of the task's lease; without it the caller must be a submitter.
         * @example l1.7.Zk3vQm9X
         */
        'X-Queue-Lease-Token'?: components['parameters']['OptionalLeaseToken'];
      };
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The run. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['TaskRun'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['TaskNotFound'];
      422: components['responses']['InvalidTask'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  getTaskTree: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The tree. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['TaskTree'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['TaskNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  completeTask: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The token that the callback carried, unless the body has `lease_token`. Missing, empty or
         *     longer than 256 characters is 422 INVALID_TASK; any other that does not hold the task's
         *     lease is 409 LEASE_LOST.
         * @example l1.7.Zk3vQm9X
         */
        'X-Queue-Lease-Token'?: components['parameters']['BodyLeaseToken'];
      };
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        'application/json': components['schemas']['CompleteTaskRequest'];
      };
    };
    responses: {
      /** @description The task is SUCCEEDED, or suspended. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Envelope'];
        };
      };
      401: components['responses']['Unauthenticated'];
      404: components['responses']['TaskNotFound'];
      409: components['responses']['LeaseLost'];
      413: components['responses']['StepTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidCompletion'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  failTask: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The token that the callback carried. Missing, empty or longer than 256 characters is 422
         *     INVALID_TASK; any other that does not hold the task's lease is 409 LEASE_LOST.
         * @example l1.7.Zk3vQm9X
         */
        'X-Queue-Lease-Token': components['parameters']['LeaseToken'];
      };
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        'application/json': components['schemas']['FailTaskRequest'];
      };
    };
    responses: {
      /** @description The attempt has failed; the task is PENDING or DEAD. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Envelope'];
        };
      };
      401: components['responses']['Unauthenticated'];
      404: components['responses']['TaskNotFound'];
      409: components['responses']['LeaseLost'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidTask'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  extendTask: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The token that the callback carried. Missing, empty or longer than 256 characters is 422
         *     INVALID_TASK; any other that does not hold the task's lease is 409 LEASE_LOST.
         * @example l1.7.Zk3vQm9X
         */
        'X-Queue-Lease-Token': components['parameters']['LeaseToken'];
      };
      path: {
        /**
         * @description The task's id, in upper or lower case.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        id: components['parameters']['TaskId'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ExtendTaskRequest'];
      };
    };
    responses: {
      /** @description The lease is extended; see `lease_expires_at`. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Envelope'];
        };
      };
      401: components['responses']['Unauthenticated'];
      404: components['responses']['TaskNotFound'];
      409: components['responses']['LeaseLost'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidTask'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  claimTasks: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ClaimRequest'];
      };
    };
    responses: {
      /** @description The claimed tasks; none when the wait is over. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ClaimResult'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      409: components['responses']['QueueNotPull'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidClaim'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  settleTasks: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SettleTasksRequest'];
      };
    };
    responses: {
      /** @description One result per item, in the order of the request. */
      207: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SettleTasksResult'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['InvalidClaim'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  listWorkers: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The queue's name.
         * @example payments.capture
         */
        queue: components['parameters']['Queue'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The workers. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WorkerList'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QueueNotFound'];
      429: components['responses']['RateLimited'];
      500: components['responses']['Internal'];
      503: components['responses']['StorageUnavailable'];
    };
  };
  getLiveness: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The process is up. */
      200: {
        headers: {
          Server: components['headers']['Server'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['LivenessResult'];
        };
      };
    };
  };
  getReadiness: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Ready. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ReadinessResult'];
        };
      };
      503: components['responses']['StorageUnavailable'];
    };
  };
  getOpenapi: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The OpenAPI document of the running server. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/yaml': components['schemas']['OpenapiDocument'];
        };
      };
    };
  };
  executeTask: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The queue.
         * @example payments.capture
         */
        'X-Queue-Name': components['schemas']['QueueName'];
        /**
         * @description The task.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        'X-Queue-Task-Id': components['schemas']['Ulid'];
        /**
         * @description The handler the task names.
         * @example mail.send
         */
        'X-Queue-Handler-Ref': components['schemas']['HandlerRef'];
        /**
         * @description The number of this attempt since the submit or the last redrive, from 1.
         * @example 1
         */
        'X-Queue-Attempt': number;
        /**
         * @description The queue's `retry.max_attempts`.
         * @example 15
         */
        'X-Queue-Max-Attempts': number;
        /**
         * @description How often the task was redriven.
         * @example 0
         */
        'X-Queue-Redrive-Count': number;
        /**
         * @description When the attempt times out.
         * @example 2026-03-02T09:15:30.000Z
         */
        'X-Queue-Deadline': components['schemas']['Timestamp'];
        /**
         * @description What `:complete`, `:fail` and `:extend` ask for. Opaque. On every task.
         * @example l1.7.Zk3vQm9X
         */
        'X-Queue-Lease-Token'?: components['schemas']['LeaseToken'];
        /**
         * @description JSON array of the tasks that this one depends on, with `id`, `handler_ref`, `status` and
         *     `result`, in the order given. Beyond 8 KiB the results are left out (`result_omitted`).
         *     Absent if there are none.
         * @example [{"id":"01JD3Z8Q4M7X2N5V9RTBKWCH6E","handler_ref":"build","status":"SUCCEEDED","result":1}]
         */
        'X-Queue-Dependencies'?: string;
        /**
         * @description `true` on the probe of `:test`, which carries no lease token. Absent on tasks.
         * @example true
         */
        'X-Queue-Probe'?: 'true';
        /**
         * @description W3C trace context; its trace id is the attempt's `trace_id`.
         * @example 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
         */
        traceparent: string;
        /**
         * @description The task id. Present when the queue signs.
         * @example 01JD3Z8Q4M7X2N5V9RTBKWCH6E
         */
        'webhook-id'?: components['schemas']['Ulid'];
        /**
         * @description Unix seconds of this attempt. Present when the queue signs.
         * @example 1772442900
         */
        'webhook-timestamp'?: number;
        /**
         * @description The signatures, separated by spaces. Present when the queue signs.
         * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
         */
        'webhook-signature'?: string;
      };
      path?: never;
      cookie?: never;
    };
    /** @description The decoded payload. `Content-Type` is the task's `payload_content_type`. */
    requestBody: {
      content: {
        '*/*': components['schemas']['PayloadBytes'];
      };
    };
    responses: {
      /**
       * @description With `X-Queue-Async: true`: the work goes on. The lease now runs for
       *     `callback.async_timeout_ms`; settle it with `:complete` or `:fail`, keep it with
       *     `:extend`. Without that header a 202 is a success like any 2xx.
       */
      202: {
        headers: {
          /**
           * @description `true` to settle later.
           * @example true
           */
          'X-Queue-Async'?: 'true';
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description The task is SUCCEEDED. */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description DEAD at once, but 408, 425 and 429 are retried. Overridden by the queue's lists. */
      '4XX': {
        headers: {
          /**
           * @description Seconds, or an HTTP date, to wait at least; at most one hour counts.
           * @example 120
           */
          'Retry-After'?: string;
          /**
           * @description `true`: the work was not begun; try again after `Retry-After` and do not count the
           *     attempt. Without effect on an answer that is not retried.
           * @example true
           */
          'X-Queue-Defer'?: 'true';
          /**
           * @description `never`: do not try again; the task is DEAD (PERMANENT).
           * @example never
           */
          'X-Queue-Retry'?: 'never';
          /**
           * @description An `error_type` of the handler's own. A value that does not match its pattern is
           *     ignored.
           * @example QUOTA_EXCEEDED
           */
          'X-Queue-Error-Type'?: components['schemas']['ErrorType'];
          /**
           * @description The `message` of the attempt, as percent-encoded UTF-8; the first KiB counts.
           * @example no%20such%20mailbox
           */
          'X-Queue-Error-Message'?: string;
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Retried by the queue's policy. Overridden by the queue's lists. */
      default: {
        headers: {
          /**
           * @description Seconds, or an HTTP date, to wait at least; at most one hour counts.
           * @example 120
           */
          'Retry-After'?: string;
          /**
           * @description `true`: the work was not begun; try again after `Retry-After` and do not count the
           *     attempt. Without effect on an answer that is not retried.
           * @example true
           */
          'X-Queue-Defer'?: 'true';
          /**
           * @description `never`: do not try again; the task is DEAD (PERMANENT).
           * @example never
           */
          'X-Queue-Retry'?: 'never';
          /**
           * @description An `error_type` of the handler's own. A value that does not match its pattern is
           *     ignored.
           * @example QUOTA_EXCEEDED
           */
          'X-Queue-Error-Type'?: components['schemas']['ErrorType'];
          /**
           * @description The `message` of the attempt, as percent-encoded UTF-8; the first KiB counts.
           * @example no%20such%20mailbox
           */
          'X-Queue-Error-Message'?: string;
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
}
type WithRequired<T, K extends keyof T> = T & {
  [P in K]-?: T[P];
};
