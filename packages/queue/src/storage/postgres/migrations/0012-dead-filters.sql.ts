/** Dead tasks by error and handler: the filter of both would read all tasks of one of them. */
export const deadFilters = [
  `CREATE INDEX ended_by_error_and_handler
    ON millrace.ended (queue_no, error_type, handler_ref, ended_at, id) WHERE outcome = 4`,
];
