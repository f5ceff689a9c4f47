// Generated from daemon.openapi.yaml. Do not edit.
export interface paths {
  '/healthz': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Report liveness
     * @description Liveness alone; touches no store and no provider. Needs no token.
     */
    get: operations['getHealth'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/docs': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Show the interactive documentation
     * @description A self-contained page; it works offline. Needs no token. Off when the setting `api_docs` is off.
     */
    get: operations['getDocs'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/docs/openapi.yaml': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read this document
     * @description The OpenAPI document this server is built from. Needs no token. Off when the setting `api_docs` is off.
     */
    get: operations['getOpenapi'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/backends': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the backends and the settings
     * @description One row for every known command line, installed or not, sorted by id, and the settings.
     */
    get: operations['listBackends'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/usage': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read provider usage
     * @description Usage windows of the rows whose tier is exactly `subscription`, disabled and uninstalled
     *     ones included. Results younger than 60 seconds come from the cache, failures too. A fetch
     *     may take 3 seconds per provider and 5 seconds in all; one that fails answers its rows with
     *     `null` values and a status that says so. This read never rescans and never changes routing,
     *     cooldowns or the default.
     */
    get: operations['getUsage'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/backends/rescan': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Detect the backends again
     * @description Searches the PATH for every known command line and probes for a local model. Updates
     *     `installed`, `binary_path` and `detected_at`; keeps `tier`, `default` and `enabled`. A newly
     *     found backend is enabled and `unclassified`.
     */
    post: operations['rescanBackends'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/backends/default': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    /**
     * Set the default backend
     * @description The backend becomes the only default. It must be known (else 404), installed, enabled and not local (else 409).
     */
    put: operations['setDefaultBackend'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/backends/thinking-mode': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    /**
     * Set the thinking mode
     * @description Selects the backends that the router may use for the daemon's own prompts. Paid backends are never among them.
     */
    put: operations['setThinkingMode'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/backends/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The backend's id, as in the registry.
         * @example claude
         */
        id: components['parameters']['BackendId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    /**
     * Update one backend
     * @description Sets `tier`, `enabled` or both; `{}` changes nothing. The tier `local` cannot be assigned,
     *     and the tier of the backend `local` cannot be changed: both are 400. Disabling the default
     *     backend leaves it the default, but it is not used until it is enabled again.
     */
    patch: operations['updateBackend'];
    trace?: never;
  };
  '/api/v1/savings': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Report token savings
     * @description Two axes: context (raw tokens against those that entered the model) and offload (cloud work
     *     done by the local model, in dollars), never mixed. 403 when the setting `savings` is off.
     */
    get: operations['getSavings'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/usage/blocks': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Report five-hour blocks
     * @description Tokens and list price of one backend in blocks of five hours, oldest first. A block begins with the full hour, in UTC, of the first message after the block before it. 403 when the setting `savings` is off.
     */
    get: operations['getUsageBlocks'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/usage/value': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Report what the agents brought
     * @description Sessions, finished tasks and merged branches of each backend beside their list price. The sessions of one queue task are one piece of work, as are those of one branch. 403 when the setting `savings` is off.
     */
    get: operations['getUsageValue'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/metrics': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read metrics for Prometheus
     * @description Sessions, spawn times, tokens, dollars, usage windows and waiting questions in the text format of Prometheus. The setting `metrics_listen` serves it at an address of its own, without a token.
     */
    get: operations['getPrometheusMetrics'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/backup': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Back up the daemon while it serves
     * @description A backup of one moment of the daemon's database: sessions, pipelines, plans, questions, spend,
     *     inbox and the registry. `since_seq` gives only the commits after that of an earlier backup, as
     *     far as the log has them. `ctl daemon backup` writes and checks the files. Needs full access.
     */
    get: operations['backupDaemon'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/spend': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Report spend
     * @description Dollars and tokens measured from the agents' own transcripts. 403 when the setting `savings` is off.
     */
    get: operations['getSpend'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/metrics': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read resource metrics
     * @description What the machine, each live agent and the daemon use now. Works with the recorder off, too.
     */
    get: operations['getMetrics'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/metrics/history': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read metrics history
     * @description Recorded every 15 seconds while the setting `metrics` is on, and kept across restarts.
     *     Samples are averaged over `step`, oldest first; an interval without a record is absent. At
     *     most 1,500 samples: a finer `step` is widened, and `step_s` tells the step used.
     */
    get: operations['getMetricsHistory'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/collab/branches': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List branch statuses
     * @description CI status of each agent that works on a branch, and its distance to the base branch. Refreshed every 60
     *     seconds. Git and CI calls fail open after 10 seconds: what they could not tell is `null`,
     *     and `error` says why. With `branches.enabled` off the list is empty.
     */
    get: operations['listBranches'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/spawn': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Spawn an agent
     * @description Starts a session on `backend`, or on the default backend. When today's or the trailing
     *     week's measured spend has reached a cap, the answer is 428 with the figures; repeat the
     *     request with `force: true` to continue. A command line that fails to start still answers 201:
     *     the session turns `errored` and says why.
     */
    post: operations['spawnSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List sessions
     * @description Every session that has not been deleted, newest first.
     */
    get: operations['listSessions'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/board': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the board
     * @description The sessions in columns: `queued` (spawning, or waiting for the end of a limit), `working`,
     *     `needs_you` (a question or an error), `review` (its turn is over and its branch is not
     *     merged) and `done`. A merge into the local base is seen at once, one into the base of the
     *     remote within 60 seconds; with `branches.enabled` off no branch counts as merged.
     */
    get: operations['getBoard'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/pipelines': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List pipelines
     * @description Every pipeline with its jobs, newest first.
     */
    get: operations['listPipelines'];
    put?: never;
    /**
     * Create a pipeline
     * @description Stores the pipeline and starts it, unless `start` is `false`. A cycle, an unknown dependency
     *     or a repeated job id is 400; an unknown backend is 404.
     */
    post: operations['createPipeline'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/think': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Answer one prompt on a free or local backend
     * @description Walks the candidates of the thinking mode: eligible free backends (the default first, then
     *     by id), then `local`. A rate-limit or spend signal stamps the backend's `limited_until` and
     *     the next candidate is tried. When none answers, the result is 200 with `degraded: true`; a
     *     paid backend is never called.
     */
    post: operations['think'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    /** Read one session */
    get: operations['getSession'];
    put?: never;
    post?: never;
    /**
     * Delete a session
     * @description Stops the agent if it still runs and forgets the session. Its worktree is removed with it,
     *     unless the worktree is dirty or its branch is not merged: then it is kept, and the answer
     *     says why. Spend and savings stay on record.
     */
    delete: operations['deleteSession'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}/output': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    /**
     * Read a session's output
     * @description Without `after`, the last `limit` lines. With `after`, the lines from that position on,
     *     oldest first; pass the `next` of the last answer to follow along. A position older than what
     *     is kept continues at the oldest line kept.
     */
    get: operations['getSessionOutput'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}/screen': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    /**
     * Read the terminal of an agent
     * @description What the terminal of an agent with the driver `tmux` shows now, with its colours. 409 for other
     *     drivers and for an agent that has ended; `/output` has the text of every agent.
     */
    get: operations['getSessionScreen'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}/diff': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    /**
     * Show what a session changed
     * @description The difference between the commit where the session's branch left the base and the files in
     *     its workspace: commits, uncommitted changes and new files that git does not ignore. At most
     *     5,000 lines of hunks and 2,000 files; `truncated` is `true` when there is more. Changes
     *     nothing in the repository.
     */
    get: operations['getSessionDiff'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}:send': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Send text to an agent
     * @description Pastes the text, presses Enter and waits until the turn has begun. 409 when the agent takes
     *     no input: it has ended, it is a headless run, or it did not take the text.
     */
    post: operations['sendToSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}:wait': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Wait for an agent
     * @description Returns when the agent does not work any more: it is idle, asks something, is limited or has ended. After `timeout_ms` it returns with `timed_out`; the call can be repeated.
     */
    post: operations['waitForSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}/summary': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    /**
     * Read what an agent has done
     * @description The session, its last answer or the end of its output, and how much its branch differs from its base.
     */
    get: operations['getSessionSummary'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}:stop': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Stop an agent
     * @description Ends the agent's process (SIGTERM, then SIGKILL) and keeps the session and its worktree. A session that has already ended is returned unchanged.
     */
    post: operations['stopSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}:serve': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Serve a worktree
     * @description Starts `serve` of the session's repository in its directory, with a free port in `PORT`, and
     *     answers when the port takes connections, or after 20 seconds. A server that runs is returned
     *     as it is. It ends with the session. 409 when the repository has no `serve`, or it ended at once.
     */
    post: operations['serveSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}:restart': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Restart an agent
     * @description Stops the agent if it runs and starts it again in the same directory, resuming the backend's
     *     own session where the backend can. `restart_count` grows by one. 409 while the session is
     *     still spawning, or when its backend is no longer installed or enabled.
     */
    post: operations['restartSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}:commit': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Commit a session's changes
     * @description Commits every change in the session's workspace, new files included, on its branch. Without
     *     `message` the name of the session is the message. Hooks and filters of the repository run only
     *     with `worktrees.hooks`. 409 when there is nothing to commit, or while the agent works and
     *     `force` is not set.
     */
    post: operations['commitSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}:push': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Push a session's branch
     * @description Pushes the branch of the session to its remote (default: the remote that the branch tracks, or
     *     `origin`) and lets it track that branch. Credential helpers and the SSH command come from the
     *     user's own git config, never from the repository. Uncommitted changes stay behind.
     */
    post: operations['pushSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}:open-pr': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Open a pull request for a session
     * @description Pushes the branch of the session and opens a pull request with the GitHub command line `gh` of the
     *     daemon's machine. Uncommitted changes stay behind.
     */
    post: operations['openPullRequest'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}:merge': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Merge a session's branch into its base
     * @description Takes the commits of the session's branch into the base branch of the same clone: `merge` makes a
     *     merge commit, `squash` one commit, `rebase` replays the commits on the base. Where the base is
     *     checked out, that checkout moves along. Nothing is changed when it conflicts (`conflicts` lists the
     *     files), when the workspace or the checkout of the base has uncommitted changes, or while the agent
     *     works and `force` is not set. Needs git 2.38 or later.
     */
    post: operations['mergeSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}:rebase': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Rebase a session's branch onto its base
     * @description Replays the commits of the session's branch on the tip of its base. Nothing is changed when one of
     *     them conflicts (`conflicts` lists the files), when the workspace has uncommitted changes, or while
     *     the agent works and `force` is not set. Nothing is fetched. Needs git 2.38 or later.
     */
    post: operations['rebaseSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/sessions/{id}/force-compact': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    /**
     * Override forced compaction for one agent
     * @description `on` or `off` overrides the setting `tokens.force_compact` for this agent; `inherit` follows it.
     */
    patch: operations['setForceCompact'];
    trace?: never;
  };
  '/api/v1/events': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Follow changes as they happen
     * @description A stream of server-sent events. Each has an `id`, an `event` (the type) and `data`: one
     *     Event as JSON. Reconnect with `Last-Event-ID` and nothing is missed. An id that is too old
     *     or unknown is answered with a `stream.reset` first: read everything again. Without an id the
     *     stream starts now. A silent stream sends a comment every 15 seconds.
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
  '/api/v1/pipelines/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The pipeline's id.
         * @example 01K9ZR0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PipelineId'];
      };
      cookie?: never;
    };
    /** Read one pipeline */
    get: operations['getPipeline'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/pipelines/{id}:start': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The pipeline's id.
         * @example 01K9ZR0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PipelineId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Start or resume a pipeline
     * @description Starts a pending pipeline. A paused one is resumed, even over the budget cap; a stalled
     *     one runs its failed and needs-attention jobs again. A running one is returned unchanged; 409
     *     when it is done or canceled.
     */
    post: operations['startPipeline'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/pipelines/{id}:cancel': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The pipeline's id.
         * @example 01K9ZR0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PipelineId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Cancel a pipeline
     * @description Stops the running jobs and skips the pending ones. A canceled pipeline is returned unchanged; 409 when it is done.
     */
    post: operations['cancelPipeline'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/plans': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List plans
     * @description Every plan with its tasks, newest first. An agent with its own token sees the plans that it and
     *     its agents have made.
     */
    get: operations['listPlans'];
    put?: never;
    /**
     * Create a plan and start it
     * @description Stores the plan and starts the tasks that wait for nothing. A task starts by itself when those
     *     that it depends on are done, with their output and branches in its prompt. A cycle, an unknown
     *     key, an unknown or missing backend and a wrong repository are 400 with the place of each; then
     *     nothing is stored. With the token of an agent the sessions of the plan are its children, and
     *     `verify` and `merge: auto` are 403.
     */
    post: operations['createPlan'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/plans/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The plan's id.
         * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PlanId'];
      };
      cookie?: never;
    };
    /**
     * Read one plan
     * @description The plan with its tasks, their sessions, branches and checks.
     */
    get: operations['getPlan'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/plans/{id}:cancel': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The plan's id.
         * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PlanId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Cancel a plan
     * @description Stops its running sessions and starts no more tasks. Branches and worktrees stay. A canceled plan
     *     is returned unchanged; 409 when it is done or failed.
     */
    post: operations['cancelPlan'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/plans/{id}/tasks/{key}:pick': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The plan's id.
         * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PlanId'];
        /**
         * @description The key of the task in its plan.
         * @example upload
         */
        key: components['parameters']['PlanTaskKey'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Pick the winner of a race
     * @description The task goes on with the branch of that session. The worktrees of the others are removed, and their
     *     branches stay for 7 days. 409 unless the task waits for a pick.
     */
    post: operations['pickSession'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/plans/{id}/tasks/{key}:claim': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The plan's id.
         * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PlanId'];
        /**
         * @description The key of the task in its plan.
         * @example upload
         */
        key: components['parameters']['PlanTaskKey'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Claim a task of a plan
     * @description Takes a task that is `ready`, for a person or an outside agent. Of two claims the first one counts;
     *     the second is 409, unless it is of the same claimant.
     */
    post: operations['claimPlanTask'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/plans/{id}/tasks/{key}:complete': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The plan's id.
         * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PlanId'];
        /**
         * @description The key of the task in its plan.
         * @example upload
         */
        key: components['parameters']['PlanTaskKey'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Complete a claimed task of a plan
     * @description Ends a task that was claimed, or is `ready`. Tasks that depend on it start, with its result in their
     *     prompt; with `failed` they are skipped. 409 when another has claimed it.
     */
    post: operations['completePlanTask'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/ready-tasks': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List tasks that can be claimed
     * @description Tasks of plans that wait for nothing and that nobody has claimed, oldest first. Tasks that the
     *     daemon starts itself are not among them.
     */
    get: operations['listReadyTasks'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/queue/callback': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Take a task from the queue server
     * @description The callback target for a queue. The request must be signed by the Standard Webhooks scheme
     *     over the bytes as sent. An `application/json` payload is a SpawnRequest; any other payload
     *     is UTF-8 text and is the prompt. The session starts, and the answer is 202 with
     *     `X-Queue-Async: true`; when the session ends the daemon completes or fails the task at the
     *     queue with the lease token: a result has the session's id and the end of its output, a
     *     failure the end of the transcript.
     *
     *     The same attempt delivered again answers the session it already started. The budget gate
     *     answers 429 with `Retry-After`, so that capped work waits in the queue; any other 4xx here
     *     sends the task to the dead-letter queue at once.
     */
    post: operations['receiveQueueTask'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/inbox': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List inbox notes
     * @description Notifications, newest first.
     */
    get: operations['listInbox'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/inbox/{id}:read': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The note's id.
         * @example 01K9ZS3M5N7P9Q1R2S4T6V8W0X
         */
        id: string;
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Mark a note as read
     * @description A note that is already read is returned unchanged.
     */
    post: operations['markNoteRead'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/questions': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List questions of agents
     * @description Permission requests and choices of agents, newest first. A question that was answered stays listed, so the list is also the record of who allowed what; the newest 1000 are kept.
     */
    get: operations['listQuestions'];
    put?: never;
    /**
     * Ask a person
     * @description A question in the name of a session: it lands where the questions of agents land. With `wait_ms` the response waits for the answer; `:wait` waits again.
     */
    post: operations['createQuestion'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/questions/{id}:wait': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The question's id.
         * @example 01K9ZT4Q6R8S0T2V4W6X8Y0Z1A
         */
        id: components['parameters']['QuestionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Wait for an answer
     * @description Returns the question when it has been answered or closed, or as it is after `timeout_ms`.
     */
    post: operations['waitForQuestion'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/questions/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The question's id.
         * @example 01K9ZT4Q6R8S0T2V4W6X8Y0Z1A
         */
        id: components['parameters']['QuestionId'];
      };
      cookie?: never;
    };
    /**
     * Get a question
     * @description The question with its options and, once it is answered, the answer.
     */
    get: operations['getQuestion'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/questions/{id}:answer': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The question's id.
         * @example 01K9ZT4Q6R8S0T2V4W6X8Y0Z1A
         */
        id: components['parameters']['QuestionId'];
      };
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Answer a question
     * @description Gives the answer to the agent and waits until the agent has taken it. Exactly one of `option_id` and `text`; `text` only for questions of kind `text`. Of two answers the first one counts, and the other is 409.
     */
    post: operations['answerQuestion'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/login-codes': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Create a one-time login code for a browser
     * @description What `ctl open` asks for. The dashboard at `/#login=CODE` exchanges the code by `POST /api/v1/login`. A code works once and for 5 minutes.
     */
    post: operations['createLoginCode'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/login': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Exchange a one-time code for a login cookie
     * @description Needs no token. Sets a cookie (HttpOnly, SameSite=Strict, 30 days) that stands for the token in this browser. Replacing the token ends every login.
     */
    post: operations['logIn'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/logout': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * End the login of this browser
     * @description Needs no token. Ends the login of the cookie that is sent and removes the cookie; without one nothing happens.
     */
    post: operations['logOut'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/config': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the live configuration
     * @description Every setting with its value and where it came from. Secrets are masked. Tiers, the default,
     *     enabled flags and the thinking mode are in the registry, not here.
     *
     *     Defaults: `savings`, `insights`, `metrics`, `api_docs`, `branches.enabled`, `tokens.guard`,
     *     `tokens.warn_alert`, `tokens.auto_compact` and `tokens.budget_gate` are on;
     *     `savings_samples`, `tokens.force_compact`, `notify.enabled` and `notify.webhook_enabled` are
     *     off; `backends.limit_retry` is 15m, `tokens.warn` 200k, `tokens.critical` 400k;
     *     `tokens.budget_daily_usd` and `tokens.budget_weekly_usd` are 0, which means no cap.
     */
    get: operations['getConfig'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    /**
     * Change settings while the daemon runs
     * @description Writes settings into the config file, which keeps its comments, and applies them. The result
     *     is validated as at start; nothing is written unless all of it is valid. Only settings that
     *     are `editable` can be changed: others apply at the next start, or come from a flag or a
     *     variable, which wins over the file. Settings of the file that were edited by hand are
     *     applied along; `{}` applies just those.
     */
    patch: operations['updateConfig'];
    trace?: never;
  };
  '/api/v1/insights': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read patterns mined from history
     * @description Computed from stored history alone, the same history giving the same answer. 403 when the setting `insights` is off.
     */
    get: operations['getInsights'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/servers': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Tell which servers behind the daemon answer
     * @description Asks the queue server and the database for a sign of life (`GET /readyz`) and answers within
     *     about 250 ms, whatever they do. A server that was asked a second ago and has not answered is
     *     `no_answer`, also when it takes connections.
     */
    get: operations['getServers'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/v1/proxy/queue/{path}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
         * @example v1/admin/queues
         */
        path: components['parameters']['UpstreamPath'];
      };
      cookie?: never;
    };
    /**
     * Read from the queue server
     * @description Passes `GET /{path}` on to the server at the setting `queue.url`, with the daemon's own
     *     `queue.token` and without the caller's. Its status, body and problem come back as they are,
     *     but for a 401, which is 502 UPSTREAM_REFUSED here. Passed on are `/v1/admin/queues`,
     *     `/v1/admin/queues/{queue}/config`, `/v1/tasks/{id}`, `/v1/jobs/{id}`, `/openapi.yaml`,
     *     `/readyz` and, below `/v1/queues/{queue}/`, `stats`, `metrics`, `tasks`, `tasks:count`,
     *     `workers`, `jobs`, `schedules`, `schedules/{name}`, `dlq` and `dlq:groups`; anything else is
     *     404. The query goes along. Redirects are not followed. An answer must begin within 35
     *     seconds.
     */
    get: operations['readQueueServer'];
    /**
     * Create or replace on the queue server
     * @description Passes `PUT /{path}` on as readQueueServer does: `/v1/admin/queues/{queue}/config` and
     *     `/v1/queues/{queue}/schedules/{name}`. `If-Match` and `If-None-Match` go along.
     */
    put: operations['putToQueueServer'];
    /**
     * Act on the queue server
     * @description Passes `POST /{path}` on as readQueueServer does: `/v1/queues/{queue}/tasks`,
     *     `/v1/queues/{queue}/tasks:cancel`, `/v1/queues/{queue}/dlq:redrive`,
     *     `/v1/queues/{queue}/dlq:purge`, `/v1/tasks/{id}:cancel`, `/v1/tasks/{id}:run-now`,
     *     `/v1/jobs/{id}:cancel`, `/v1/queues/{queue}/schedules/{name}:run-now`, `:pause` and
     *     `:resume`, `/v1/admin/queues/{queue}:pause`, `:resume` and `:test`. A read-only token may
     *     redrive, purge and cancel with `dry_run: true`, and nothing else.
     */
    post: operations['callQueueServer'];
    /**
     * Delete from the queue server
     * @description Passes `DELETE /{path}` on as readQueueServer does: `/v1/queues/{queue}/schedules/{name}`.
     */
    delete: operations['deleteFromQueueServer'];
    options?: never;
    head?: never;
    /**
     * Change a task of the queue server
     * @description Passes `PATCH /{path}` on as readQueueServer does: `/v1/tasks/{id}`.
     */
    patch: operations['patchQueueServer'];
    trace?: never;
  };
  '/api/v1/proxy/db/{path}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
         * @example v1/admin/queues
         */
        path: components['parameters']['UpstreamPath'];
      };
      cookie?: never;
    };
    /**
     * Read from the database
     * @description Passes `GET /{path}` on to the REST bridge at the setting `database.url`, with the daemon's own
     *     `database.api_key`, as readQueueServer does for the queue: `/openapi.yaml`,
     *     `/v1/admin/replication`, `/v1/admin/schemas/{collection}`, `/v1/admin/index-advice`,
     *     `/v1/{collection}/records/{id}` and `/v1/{collection}/keys/{key}`.
     */
    get: operations['readDatabase'];
    put?: never;
    /**
     * Query or change the database
     * @description Passes `POST /{path}` on: `/v1/{collection}/records`, `/v1/{collection}/keys`,
     *     `/v1/{collection}/records:find`, `:aggregate`, `:watch`,
     *     `/v1/{collection}/records/{id}:updateIfRev` and
     *     `/v1/admin/collections/{collection}/indexes`. A read-only token may find, aggregate and
     *     watch. A watch streams until the caller leaves, the database ends it or the daemon stops.
     */
    post: operations['callDatabase'];
    /**
     * Delete a record or an index of the database
     * @description Passes `DELETE /{path}` on: `/v1/{collection}/records/{id}` and
     *     `/v1/admin/collections/{collection}/indexes/{index}`.
     */
    delete: operations['deleteFromDatabase'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/mcp': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Send an MCP message
     * @description The Model Context Protocol over streamable HTTP; the messages are the protocol's own. Accept
     *     both `application/json` and `text/event-stream`. The server keeps no MCP sessions, so there
     *     is no stream to open or session to end: GET and DELETE are 405. A read-only token may call
     *     the tools annotated read-only; any other tool answers it with an error result.
     *
     *     Tools and the schema of their structured content: `list_backends`, `rescan_backends` and
     *     `set_default_backend` Registry; `set_backend_tier` BackendRow; `set_thinking_mode` Settings;
     *     `set_force_compact` ForceCompactState; `get_branch_status` BranchStandings; `savings`
     *     SavingsReport; `spend` SpendRollup.
     */
    post: operations['postMcp'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Show the dashboard
     * @description The static shell; it holds no data and needs no token. Its views are addressed by fragment (`/#/spend`), so this is its only page.
     */
    get: operations['getDashboard'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/assets/{file}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The file's name.
         * @example index-4f2a9c.js
         */
        file: components['parameters']['AssetFile'];
      };
      cookie?: never;
    };
    /**
     * Read a file of the dashboard
     * @description Scripts, styles, fonts and images of the shell. Needs no token.
     */
    get: operations['getDashboardAsset'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/api/docs/assets/{file}': {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The file's name.
         * @example index-4f2a9c.js
         */
        file: components['parameters']['AssetFile'];
      };
      cookie?: never;
    };
    /**
     * Read a file of the documentation page
     * @description Scripts and styles of the page. Needs no token. Off when the setting `api_docs` is off.
     */
    get: operations['getDocsAsset'];
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
  notification: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * An alert, sent to your webhook
     * @description Sent to `notify.webhook_url` while `notify.webhook_enabled` is on: an agent waits for input,
     *     is stuck idle, orphaned or errored, or its context crosses into warning or critical. Signed
     *     by the Standard Webhooks scheme. Answer any 2xx within 5 seconds; anything else is retried
     *     from a durable outbox. Redirects are never followed, and a link-local target is refused.
     */
    post: operations['notify'];
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
     * @description The stable machine code; the closed list of `x-error-codes`.
     * @enum {string}
     */
    ErrorCode:
      | 'INVALID_REQUEST'
      | 'UNAUTHENTICATED'
      | 'BAD_SIGNATURE'
      | 'FORBIDDEN'
      | 'SAVINGS_DISABLED'
      | 'FEATURE_DISABLED'
      | 'NOT_FOUND'
      | 'BACKEND_NOT_FOUND'
      | 'SESSION_NOT_FOUND'
      | 'PIPELINE_NOT_FOUND'
      | 'PLAN_NOT_FOUND'
      | 'NOTE_NOT_FOUND'
      | 'QUESTION_NOT_FOUND'
      | 'METHOD_NOT_ALLOWED'
      | 'NOT_ACCEPTABLE'
      | 'BACKEND_NOT_ELIGIBLE'
      | 'SESSION_AMBIGUOUS'
      | 'SESSION_STATE'
      | 'NO_WORKSPACE'
      | 'WORKSPACE_DIRTY'
      | 'MERGE_CONFLICT'
      | 'NO_CHANGES'
      | 'GH_NOT_INSTALLED'
      | 'GIT_FAILED'
      | 'PIPELINE_STATE'
      | 'PLAN_STATE'
      | 'QUESTION_CLOSED'
      | 'IDEMPOTENCY_CONFLICT'
      | 'CONFIG_CONFLICT'
      | 'CONFIG_NOT_WRITABLE'
      | 'SETTING_NOT_EDITABLE'
      | 'PAYLOAD_TOO_LARGE'
      | 'UNSUPPORTED_MEDIA_TYPE'
      | 'UNKNOWN_OPTION'
      | 'BUDGET_CONFIRMATION_REQUIRED'
      | 'BUDGET_EXCEEDED'
      | 'TOO_MANY_ATTEMPTS'
      | 'INTERNAL'
      | 'UPSTREAM_UNREACHABLE'
      | 'UPSTREAM_REFUSED';
    /** @description What went wrong and what to do about it (RFC 9457). */
    Problem: {
      /**
       * Format: uri-reference
       * @description `urn:millrace:problem:` and the code in lower case with dashes.
       */
      type: string;
      /** @description The kind of problem in a few words. */
      title: string;
      /** @description The HTTP status again. */
      status: number;
      /** @description What was wrong this time and what to do. */
      detail: string;
      /** @description The machine code to branch on. */
      code: components['schemas']['ErrorCode'];
      /** @description The same text as `detail`. */
      error: string;
      /** @description Each wrong place of a request, with INVALID_REQUEST. */
      errors?: components['schemas']['FieldError'][];
      /** @description The sessions that match, with SESSION_AMBIGUOUS; at most 10. */
      candidates?: components['schemas']['SessionCandidate'][];
      /** @description Paths of the conflicting files, with MERGE_CONFLICT. */
      conflicts?: string[];
    };
    /** @description A session that a name or prefix may mean. */
    SessionCandidate: {
      /** @description Its id. */
      id: string;
      /** @description Its name. */
      name: string;
    };
    /** @description One wrong place of a request. */
    FieldError: {
      /** @description JSON pointer (RFC 6901) into the body, `""` for the body as a whole; for a parameter `/` and its name. */
      pointer: string;
      /** @description What is wrong there. */
      message: string;
    };
    /** @description The problem of a spawn that needs confirmation, with the figures. */
    BudgetConfirmation: {
      /**
       * Format: uri-reference
       * @description Names the kind of problem.
       */
      type: string;
      /** @description The kind of problem in a few words. */
      title: string;
      /**
       * @description The HTTP status again.
       * @constant
       */
      status: 428;
      /** @description Which cap is reached and how to continue. */
      detail: string;
      /**
       * @description The machine code.
       * @constant
       */
      code: 'BUDGET_CONFIRMATION_REQUIRED';
      /** @description The same text as `detail`. */
      error: string;
      /**
       * @description Always `true`: repeat with `force` to continue.
       * @constant
       */
      confirmation_required: true;
      /**
       * @description The check that asks for confirmation.
       * @constant
       */
      gate: 'budget';
      /** @description The figures behind the check. */
      verdict: components['schemas']['BudgetVerdict'];
    };
    /** @description Measured spend against the caps. */
    BudgetVerdict: {
      /** @description Whether a cap is reached. */
      over: boolean;
      /** @description Today's measured spend. */
      daily_usd: number;
      /** @description Measured spend of the trailing 7 days. */
      weekly_usd: number;
      /** @description `tokens.budget_daily_usd`; 0 means no daily cap. */
      cap_daily: number;
      /** @description `tokens.budget_weekly_usd`; 0 means no weekly cap. */
      cap_weekly: number;
      /** @description Which cap is reached, in words. */
      reason: string;
    };
    /**
     * Format: date-time
     * @description RFC 3339, UTC with milliseconds.
     */
    Timestamp: string;
    /**
     * @description A span back from now, in minutes, hours, days or weeks, such as `24h`, `7d` or `2w`.
     * @example 24h
     * @example 7d
     * @example 2w
     */
    Window: string;
    /** @description A span back from now (`24h`, `7d`, `2w`) or an RFC 3339 timestamp. */
    Since: string | components['schemas']['Window'] | components['schemas']['Timestamp'];
    /** @description A width in seconds, minutes, hours or days, such as `60`, `30s` or `5m`. */
    Step: string;
    /** @description Liveness. */
    Health: {
      /**
       * @description Always `ok`: a daemon that answers is up.
       * @constant
       */
      status: 'ok';
      /** @description The daemon's version. */
      version?: string;
    };
    /** @description Liveness of the servers behind the daemon. */
    ServerStates: {
      queue: components['schemas']['ServerState'];
      database: components['schemas']['ServerState'];
    };
    /** @description Liveness of one server. */
    ServerState: {
      /**
       * @description `live` answers; `no_answer` takes connections or packets but has not answered for a second; `down` cannot be reached; `checking` has not been asked before.
       * @enum {string}
       */
      state: 'live' | 'no_answer' | 'down' | 'checking';
      /** @description Milliseconds since its last answer; null when it never answered this daemon. */
      answered_ms_ago: number | null;
      /** @description How long its last answer took; null unless it is live. */
      latency_ms: number | null;
      /** @description Why it cannot be reached; null unless it is down. */
      detail: string | null;
    };
    /** @description JSON as the server behind the daemon defines it in its own OpenAPI document. */
    UpstreamJson: Record<string, never> | unknown[];
    /** @description One JSON object a line. */
    UpstreamLines: string;
    /** @description An HTML page. */
    HtmlPage: string;
    /** @description A YAML document. */
    YamlText: string;
    /** @description The sections of the documentation that the dashboard shows. */
    FileJson: Record<string, never>[];
    /** @description The text of a file. */
    FileText: string;
    /**
     * Format: binary
     * @description The bytes of a file.
     */
    FileBytes: string;
    /** @description A backend's stable id; `local` is reserved for the local model. */
    BackendName: string;
    /**
     * @description How a backend is billed. The router calls `free` ones, then `local`; never `subscription`,
     *     `pay_per_use` or `unclassified` (newly found, treated as not free).
     * @enum {string}
     */
    Tier: 'free' | 'subscription' | 'pay_per_use' | 'unclassified' | 'local';
    /**
     * @description A tier that can be assigned; `local` is set by the system alone.
     * @enum {string}
     */
    AssignableTier: 'free' | 'subscription' | 'pay_per_use' | 'unclassified';
    /**
     * @description `local_only`: the local model alone. `free_plus_local`: eligible free backends, then the local model.
     * @enum {string}
     */
    ThinkingMode: 'local_only' | 'free_plus_local';
    /** @description One backend of the registry. */
    BackendRow: {
      /** @description The stable id. */
      id: components['schemas']['BackendName'];
      /** @description Whether the binary is on the search path; for `local`, whether its endpoint answers. */
      installed: boolean;
      /** @description The resolved path; empty for `local` and for what is not installed. */
      binary_path: string;
      /** @description When detection last ran. */
      detected_at: components['schemas']['Timestamp'];
      /** @description How it is billed. */
      tier: components['schemas']['Tier'];
      /** @description Whether it is the default; at most one row is. */
      default: boolean;
      /** @description Whether it may be used. */
      enabled: boolean;
      /** @description True only for the reserved row `local`, which is never limited and never the default. */
      is_local: boolean;
      /**
       * Format: date-time
       * @description The router skips the backend until then. `null` when it is not limited; always `null` for `local`.
       */
      limited_until: string | null;
      /** @description How the backend speaks the Agent Client Protocol; absent when it does not, or when its program was not run for it yet: the daemon does so ten seconds after its start, at the first spawn, and in a rescan with `acp=true`. */
      acp?: components['schemas']['AcpSource'];
    };
    /** @description How a backend speaks the Agent Client Protocol. */
    AcpSource: {
      /**
       * @description `native`: the command line itself. `adapter`: a program of its own.
       * @enum {string}
       */
      via: 'native' | 'adapter';
      /** @description The program and its arguments. */
      command: string[];
    };
    /** @description A mode or model that an agent offers. */
    AcpOffer: {
      /** @description The id to choose it by. */
      id: string;
      /** @description The name as the agent shows it. */
      name: string;
    };
    /** @description What an agent says of itself over the Agent Client Protocol. */
    AcpFacts: {
      /** @description Its name and version. */
      agent: string | null;
      /** @description The id of its mode; `null` when it has no modes. */
      mode: string | null;
      /** @description The modes it offers. */
      modes: components['schemas']['AcpOffer'][];
      /** @description The models it offers. */
      models: components['schemas']['AcpOffer'][];
    };
    /** @description The settings that live in the registry. */
    Settings: {
      /**
       * @description Which backends the router may use.
       * @default free_plus_local
       */
      internal_thinking_mode: components['schemas']['ThinkingMode'];
      /**
       * @description Whether paid backends may be used without a person.
       * @default false
       */
      allow_paid_autopilot: boolean;
    };
    /** @description Every backend, sorted by id, and the settings. */
    Registry: {
      /** @description One row per backend. */
      backends: components['schemas']['BackendRow'][];
      /** @description The settings. */
      settings: components['schemas']['Settings'];
    };
    /** @description Which backend to make the default. */
    SetDefaultRequest: {
      /** @description The id of an installed and enabled backend that is not local. */
      id: string;
    };
    /** @description Which thinking mode to use. */
    SetThinkingModeRequest: {
      /** @description The new mode. */
      mode: components['schemas']['ThinkingMode'];
    };
    /** @description What to change; what is absent stays. */
    UpdateBackendRequest: {
      /** @description The new tier. */
      tier?: components['schemas']['AssignableTier'];
      /** @description Whether the backend may be used. */
      enabled?: boolean;
    };
    /**
     * @description `ok`: every window below 100 percent. `rate_limited`: a window at the cap. `unsupported`:
     *     there is no way to ask this provider. `unauthenticated`: no valid login. `unavailable`: the
     *     provider could not be reached or refused to tell, a 429 included. `timeout`: it took too
     *     long. `error`: its answer made no sense. `not_installed`: the command line is missing.
     * @enum {string}
     */
    UsageStatus:
      | 'ok'
      | 'rate_limited'
      | 'unsupported'
      | 'unauthenticated'
      | 'unavailable'
      | 'timeout'
      | 'error'
      | 'not_installed';
    /** @description One usage window, as the provider reports it. */
    UsageLimit: {
      /** @description `<backend_id>:<scope>`. */
      id: string;
      /** @description What the window applies to, such as `primary` or `five_hour`. */
      scope: string;
      /** @description Display name. Unique among sessions that have not ended. */
      label: string;
      /** @description How much is used; `null` when unknown, never 0 by default. */
      used_percent: number | null;
      /**
       * Format: date-time
       * @description When the window resets; `null` when unknown.
       */
      resets_at: string | null;
      /** @description The model families it counts; `null` when unknown. */
      model_families: string[] | null;
      /** @description The models it counts; `null` when unknown. */
      models: string[] | null;
      /** @description When the window is full at the rate of its last readings; `null` without three readings over ten minutes, and when it resets before. */
      forecast?: {
        /** @description When it is full. */
        full_at: components['schemas']['Timestamp'];
      } | null;
    };
    /** @description Five-hour blocks of one backend. */
    UsageBlocks: {
      /** @description The id of the backend. */
      backend: string;
      /** @description Oldest first. */
      blocks: components['schemas']['UsageBlock'][];
    };
    /** @description What was used in five hours. */
    UsageBlock: {
      /** @description A full hour. */
      start: components['schemas']['Timestamp'];
      /** @description Five hours later. */
      end: components['schemas']['Timestamp'];
      /** @description The first message, to the quarter of an hour when it is older than a week. */
      first_at: components['schemas']['Timestamp'];
      /** @description The last message, likewise. */
      last_at: components['schemas']['Timestamp'];
      /** @description Whether it has not ended. */
      is_active: boolean;
      /** @description The models used. */
      models: string[];
      /** @description Input tokens. */
      input_tokens: number;
      /** @description Output tokens. */
      output_tokens: number;
      /** @description Tokens read from the cache. */
      cache_read_tokens: number;
      /** @description Tokens written to the cache. */
      cache_write_tokens: number;
      /** @description The list price, cache included; `null` when no model has a known price. */
      exact_usd: number | null;
      /** @description The rate between the first and the last message; `null` with a single one. */
      burn: {
        /** @description Tokens of all kinds. */
        tokens_per_minute: number;
        /** @description The list price. */
        usd_per_hour: number | null;
      } | null;
      /** @description The whole block if the rate stays; `null` for a block that has ended or has no rate. */
      projection: {
        /** @description Tokens of all kinds. */
        tokens: number;
        /** @description The list price. */
        exact_usd: number | null;
      } | null;
    };
    /** @description What the agents brought for their price. */
    UsageValue: {
      /** @description By backend, in the order of their ids. */
      by_backend: components['schemas']['UsageValueRow'][];
      /** @description All backends together; its `backend` is `all`. */
      total: components['schemas']['UsageValueRow'];
    };
    /** @description The work and the price of one backend. */
    UsageValueRow: {
      /** @description The id of the backend. */
      backend: string;
      /** @description Sessions of this daemon. */
      sessions: number;
      /** @description Pieces of work that were done or merged. A task of a plan is when its status is `done`; an agent that was stopped is not. */
      finished_tasks: number;
      /** @description Pieces of work that were merged. */
      merged_branches: number;
      /** @description The share of work that has finished or ended whose first session was done without a restart; `null` when there is none. */
      first_try_rate: number | null;
      /** @description The list price of all its sessions; `null` when unknown. */
      exact_usd: number | null;
      /** @description The list price of finished work, all attempts included, for each. */
      usd_per_finished_task: number | null;
      /** @description The list price of merged work for each. */
      usd_per_merged_branch: number | null;
    };
    /** @description Metrics in the text format of Prometheus. */
    PrometheusText: string;
    /** @description Usage as it was at an earlier time. */
    UsageSnapshot: {
      /** @description When it was seen. */
      observed_at: components['schemas']['Timestamp'];
      /** @description The windows as they were. */
      usage: components['schemas']['UsageLimit'][];
    };
    /** @description Usage of one subscription backend. */
    BackendUsage: {
      /** @description The backend's id. */
      id: components['schemas']['BackendName'];
      /**
       * @description Always `subscription`.
       * @constant
       */
      tier: 'subscription';
      /** @description Whether the command line is installed. */
      installed: boolean;
      /** @description Whether the backend may be used. */
      enabled: boolean;
      /** @description State of the windows, or why they are unknown. */
      status: components['schemas']['UsageStatus'];
      /** @description The windows, sorted by id. After a failed fetch the same rows with `null` values. */
      usage: components['schemas']['UsageLimit'][];
      /**
       * Format: date-time
       * @description When this result was fetched; `null` when nothing was.
       */
      observed_at: string | null;
      /** @description Whether this result came from the cache. */
      cached: boolean;
      /** @description After a failure, what was last seen. */
      last_good?: components['schemas']['UsageSnapshot'];
      /** @description Why the fetch failed, in words; never credentials, paths or provider output. */
      error?: string;
    };
    /** @description Usage of every subscription backend; the stable v1 document of `ctl usage --json`. */
    UsageDocument: {
      /**
       * @description The version of this document's shape.
       * @constant
       */
      schema_version: 1;
      /** @description When the document was made. */
      generated_at: components['schemas']['Timestamp'];
      /** @description One entry per backend whose tier is subscription, sorted by id. */
      backends: components['schemas']['BackendUsage'][];
    };
    /**
     * @description Whether figures use a calibrated ratio of bytes to tokens or the default ratio of 4.
     * @enum {string}
     */
    Basis: 'CALIBRATED' | 'HEURISTIC';
    /**
     * @description What saved: `check` (build and test output), `git` (commit, push and sync output), `compact`
     *     (automatic compaction), `llm_offload` (work moved to the local model).
     * @enum {string}
     */
    SavingsFeature: 'check' | 'git' | 'compact' | 'llm_offload';
    /** @description What one feature saved. */
    FeatureSavings: {
      /** @description The feature. */
      feature: components['schemas']['SavingsFeature'];
      /** @description Tokens saved. */
      saved_tokens: number;
      /** @description Tokens there would have been. */
      raw_tokens: number;
      /** @description Ledger entries. */
      events: number;
    };
    /** @description Tokens that would have entered the model against those that did. */
    ContextSavings: {
      /** @description Tokens that would have entered. */
      raw_tokens: number;
      /** @description Tokens that did. */
      kept_tokens: number;
      /** @description The difference. */
      saved_tokens: number;
      /** @description The difference at the top tier's input rate. */
      saved_dollars: number;
      /** @description The difference in percent of the raw tokens; 0 when there are none. */
      reduction_pct: number;
    };
    /** @description Cloud-model work done by the local model. Never part of the context figures. */
    OffloadSavings: {
      /** @description Tokens the local model handled. */
      tokens: number;
      /** @description What they would have cost at the top tier's rates. */
      dollars: number;
      /** @description Ledger entries. */
      events: number;
    };
    /** @description The two axes, apart. */
    SavingsAxes: {
      /** @description The context axis. */
      context: components['schemas']['ContextSavings'];
      /** @description The offload axis. */
      offload: components['schemas']['OffloadSavings'];
    };
    /** @description Saved tokens by feature; a feature without events may be absent. */
    FeatureTokens: {
      [key: string]: number;
    };
    /** @description One interval of the trend; an idle one holds real zeros. */
    SavingsBucket: {
      /** @description Start of the interval in unix seconds. */
      ts: number;
      /** @description A label: `2026-01-15`, or `2026-01-15 09:00` by the hour. */
      date: string;
      /** @description Tokens saved in the interval, on the context axis. */
      saved_tokens: number;
      /** @description Ledger entries in the interval. */
      events: number;
      /** @description Running total of `saved_tokens`. */
      cumulative: number;
      /** @description The interval's saved tokens by feature; `llm_offload` stands here alone. */
      by_feature: components['schemas']['FeatureTokens'];
    };
    /** @description One retained pair of raw and kept text. */
    SavingsSample: {
      /** @description When it was recorded. */
      ts: components['schemas']['Timestamp'];
      /** @description The feature that saved. */
      feature: components['schemas']['SavingsFeature'];
      /** @description The session it belongs to; `null` when none. */
      agent_id: string | null;
      /** @description The repository; `null` when none. */
      repo: string | null;
      /** @description What there was. */
      raw: string;
      /** @description What entered the model. */
      kept: string;
      /** @description Tokens of the raw text. */
      raw_tokens: number;
      /** @description Tokens of the kept text. */
      kept_tokens: number;
    };
    /** @description Token savings. The top-level figures are those of the context axis; `events` counts all. */
    SavingsReport: {
      /**
       * Format: date-time
       * @description Where the report starts; `null` means all time.
       */
      since: string | null;
      /** @description Ledger entries of every feature. */
      events: number;
      /** @description Tokens that would have entered the model. */
      raw_tokens: number;
      /** @description Tokens that did. */
      kept_tokens: number;
      /** @description The difference. */
      saved_tokens: number;
      /** @description The difference in dollars. */
      saved_dollars: number;
      /** @description The difference in percent of the raw tokens; 0 when there are none. */
      reduction_pct: number;
      /** @description One row per feature that has events. */
      features: components['schemas']['FeatureSavings'][];
      /** @description Context and offload. */
      axes: components['schemas']['SavingsAxes'];
      /** @description Source of the token figures. */
      basis: components['schemas']['Basis'];
      /** @description The calibrated ratio; `null` when the basis is HEURISTIC. */
      calibrated_bytes_per_token: number | null;
      /** @description The trend, with `bucket`. Contiguous, oldest first, up to now. */
      buckets?: components['schemas']['SavingsBucket'][];
      /**
       * @description The width of a bucket, with `bucket`.
       * @enum {string}
       */
      bucket_granularity?: 'day' | 'hour';
      /** @description The newest retained pairs, newest first, with `samples`. Empty when none are retained. */
      samples?: components['schemas']['SavingsSample'][];
    };
    /** @description Spend of one agent, repository, day, model or backend. */
    SpendRow: {
      /** @description What the row is about: a session id, a repository path, a local date, a model or a backend id. */
      key: string;
      /** @description Input tokens. */
      input_tokens: number;
      /** @description Output tokens. */
      output_tokens: number;
      /** @description Dollars; `null` when nothing in the row has a price (tokens only). */
      usd: number | null;
      /** @description Dollars by the list price of each model, cache included; `null` when no model of the row has a known price. */
      exact_usd?: number | null;
    };
    /**
     * @description Spend from measured tokens, in dollars per million input and output tokens: top model tier 5
     *     and 25, middle 3 and 15, low 0.8 and 4, an unrecognised model as the top tier. One backend
     *     family is priced; the others report tokens only.
     */
    SpendRollup: {
      /** @description All time. */
      total_usd: number;
      /** @description The local day so far. */
      daily_usd: number;
      /** @description The trailing 7 days. */
      weekly_usd: number;
      /** @description The calendar week so far, from Monday. */
      week_usd: number;
      /** @description Cache reads and writes, all time; in none of the other dollar figures. */
      cache_usd: number;
      /** @description All time by the list price of each model, cache included; `null` when no model has a known price. */
      exact_usd?: number | null;
      /** @description `exact_usd` of the local day so far. */
      daily_exact_usd?: number | null;
      /** @description `exact_usd` of the trailing 7 days, from the quarter of an hour they begin in. */
      weekly_exact_usd?: number | null;
      /** @description `exact_usd` of the calendar week so far, from Monday. */
      week_exact_usd?: number | null;
      /** @description By local hour of the last 7 days, `2026-01-15T09:00`, oldest first. */
      by_hour?: components['schemas']['SpendRow'][];
      /** @description By branch of the daemon's sessions, the most expensive first; `none` is what belongs to no branch. */
      by_branch?: components['schemas']['SpendRow'][];
      /** @description By the id of the queue task, or PLAN/KEY of the task of a plan, that the daemon's sessions worked on, the most expensive first; `none` is what belongs to no task. */
      by_task?: components['schemas']['SpendRow'][];
      /** @description Models that have no known list price and are in no exact figure. */
      unpriced_models?: string[];
      /** @description Input tokens of every backend that reports them. */
      input_tokens: number;
      /** @description Output tokens of every backend that reports them. */
      output_tokens: number;
      /** @description Tokens read from the provider's cache, beside the input; codex counts them as input. */
      cache_read_tokens: number;
      /** @description Tokens written to the provider's cache. */
      cache_write_tokens: number;
      /** @description By session, the most expensive first. */
      by_agent: components['schemas']['SpendRow'][];
      /** @description By repository, the most expensive first. */
      by_repo: components['schemas']['SpendRow'][];
      /** @description By local day, oldest first. */
      by_day: components['schemas']['SpendRow'][];
      /** @description By model, the most expensive first. */
      by_model: components['schemas']['SpendRow'][];
      /** @description By backend, the most expensive first. */
      by_backend: components['schemas']['SpendRow'][];
      /** @description Source of token figures that are not measured. */
      basis: components['schemas']['Basis'];
    };
    /** @description What the machine uses. */
    SystemMetrics: {
      /** @description CPU in percent of all cores; `null` until measured. */
      cpu_pct: number | null;
      /** @description Bytes of memory in use. */
      mem_used: number;
      /** @description Bytes of memory there are. */
      mem_total: number;
      /** @description Load average of the last minute; `null` where the system has none. */
      load: number | null;
    };
    /** @description What one live agent uses, with its child processes. */
    AgentMetrics: {
      /** @description The session's id. */
      id: string;
      /** @description CPU in percent of one core; `null` when unknown. */
      cpu_pct: number | null;
      /** @description Resident memory in bytes; `null` when unknown. */
      rss: number | null;
      /** @description Tokens in its context; `null` when unknown. */
      context_tokens: number | null;
    };
    /** @description What the daemon itself uses. */
    DaemonMetrics: {
      /** @description Resident memory in bytes. */
      rss: number;
      /** @description 99th percentile of event-loop delay; `null` until measured. */
      event_loop_p99_ms: number | null;
      /** @description Seconds since start. */
      uptime_s: number;
    };
    /** @description Resource use at one moment, or averaged over one step of history. */
    Metrics: {
      /** @description When it was taken; the start of the step in history. */
      taken_at: components['schemas']['Timestamp'];
      /** @description The machine. */
      system: components['schemas']['SystemMetrics'];
      /** @description The live agents, sorted by id. */
      agents: components['schemas']['AgentMetrics'][];
      /** @description The daemon. */
      daemon: components['schemas']['DaemonMetrics'];
      /** @description The scan of the agents' transcripts that runs now: until it ends, spend is incomplete. Absent without one, and in history. */
      transcript_scan?: components['schemas']['TranscriptScan'];
    };
    /** @description How far a scan of the transcripts is. */
    TranscriptScan: {
      /** @description Bytes read so far. */
      bytes_read: number;
      /** @description Bytes to read, `bytes_read` included; approximate while agents write. */
      bytes_total: number;
      /** @description Milliseconds since the scan began. */
      elapsed_ms: number;
    };
    /** @description Recorded metrics. */
    MetricsHistory: {
      /** @description The samples, oldest first. */
      samples: components['schemas']['Metrics'][];
      /** @description The width of one sample in seconds. */
      step_s: number;
    };
    /**
     * @description `none`: no run for the head commit. `null`: unknown.
     * @enum {string|null}
     */
    CiState: 'success' | 'failure' | 'pending' | 'none' | null;
    /** @description What CI says of the branch's head commit, over all its runs. */
    CiStanding: {
      /** @description The worst of all runs. */
      state: components['schemas']['CiState'];
      /** @description The workflow that decided the state; `null` when unknown. */
      workflow: string | null;
      /**
       * Format: uri
       * @description Its page; `null` when unknown.
       */
      url: string | null;
    };
    /** @description One run for the head commit. */
    CiCheck: {
      /** @description The run's name. */
      name: string;
      /** @description Status. */
      state: components['schemas']['CiState'];
      /**
       * Format: uri
       * @description Its page; `null` when unknown.
       */
      url: string | null;
    };
    /** @description One agent's branch with its CI status, and the commits ahead of and behind its base. */
    BranchStanding: {
      /** @description The session's id. */
      agent_id: string;
      /** @description The session's name. */
      name: string;
      /** @description The branch; `null` when unknown. */
      branch: string | null;
      /** @description The base branch, from `origin/HEAD`; `null` when unknown. */
      base: string | null;
      /** @description What CI says. */
      ci: components['schemas']['CiStanding'];
      /** @description All runs of the head commit. */
      checks: components['schemas']['CiCheck'][];
      /** @description Commits the base does not have; `null` when unknown. */
      ahead: number | null;
      /** @description Commits of the base it does not have; more than 10 is far behind. `null` when unknown. */
      behind: number | null;
      /** @description Whether the base contains it; `null` when unknown. */
      merged: boolean | null;
      /**
       * @description Changed and new files that are not committed; null or absent when unknown, as in a
       *     directory that the session shares with others after its end.
       */
      uncommitted?: number | null;
      /**
       * Format: date-time
       * @description When it was last checked; `null` before the first check.
       */
      observed_at: string | null;
      /** @description Why something is unknown; `null` when nothing failed. */
      error: string | null;
    };
    /** @description The status of each agent's branch. */
    BranchStandings: {
      /** @description One entry per agent that works on a branch. */
      branches: components['schemas']['BranchStanding'][];
    };
    /** @description The prompt. */
    Prompt: string;
    /** @description A git branch name; it cannot start with a dash. */
    BranchName: string;
    /** @description A free label without spaces or commas. */
    Tag: string;
    /**
     * @description `tmux`: interactive, survives a restart of the daemon. `headless`: one run, then done. `acp`: interactive over the Agent Client Protocol, survives likewise.
     * @enum {string}
     */
    Driver: 'tmux' | 'headless' | 'acp';
    /** @description What to spawn. */
    SpawnRequest: {
      /** @description The first prompt. */
      prompt: components['schemas']['Prompt'];
      /** @description The backend to run; absent means the default. Unknown is 404; not installed, disabled or local is 409. */
      backend?: string;
      /** @description The model to ask the backend for; absent means the backend's own choice. */
      model?: string;
      /** @description Path of the git repository to work in; must exist. */
      repo?: string;
      /** @description Directory to work in; must exist. If it is in the repository of a new worktree, the same directory of the worktree, or its top if that is missing there. Absent means the worktree, else `repo`, else the directory the daemon runs in. */
      cwd?: string;
      /** @description Branch to work on; made if it does not exist. Naming one makes a worktree, unless `worktree` is false: then it must be checked out where the agent works. */
      branch?: components['schemas']['BranchName'];
      /** @description Branch or commit that a new branch starts from; absent means what is checked out in `repo`. */
      base?: components['schemas']['BranchName'];
      /** @description Whether to make a worktree of the repository for this session. Default: true where `branch` is named, else false. */
      worktree?: boolean;
      /**
       * @description Display name; by default one made from the prompt. When a live session has it, `-2`, `-3`
       *     and so on is added.
       */
      name?: string;
      /**
       * @description Labels of the session.
       * @default []
       */
      tags?: components['schemas']['Tag'][];
      /** @description The session this one was started by, by its id or name; must exist. */
      parent_id?: string;
      /** @description Most dollars (list prices) for this agent and those that it starts; once they are spent it can start no more. */
      budget_usd?: number;
      /**
       * @description Whether to restart the agent when its process ends with an error.
       * @default false
       */
      auto_restart?: boolean;
      /** @description How to run it; absent means the setting `drivers.default`, by default `acp` where the backend row has it, else `tmux` where it is installed, else `headless`. */
      driver?: components['schemas']['Driver'];
      /** @description The mode to start in, one of those the agent offers; only with `acp`. */
      mode?: string;
      /**
       * @description Start even though a spend cap is reached.
       * @default false
       */
      force?: boolean;
    };
    /**
     * @description `waiting_for_input`: a question or a permission prompt. `idle`: an empty prompt after a
     *     turn. `done`: ended well or stopped. `errored`: ended badly. `orphaned`: lost while the
     *     daemon was away. `rate_limited`: the provider refuses until `limited_until`.
     * @enum {string}
     */
    SessionStatus:
      | 'spawning'
      | 'working'
      | 'waiting_for_input'
      | 'idle'
      | 'done'
      | 'errored'
      | 'orphaned'
      | 'rate_limited';
    /**
     * @description Context size against `tokens.warn` and `tokens.critical`; `null` when unknown.
     * @enum {string|null}
     */
    ContextState: 'ok' | 'warning' | 'critical' | null;
    /**
     * @description `on` or `off` for this agent, or `inherit` to follow the setting.
     * @enum {string}
     */
    ForceCompactChoice: 'on' | 'off' | 'inherit';
    /** @description One agent and its work. */
    Session: {
      /** @description The session's id. */
      id: string;
      /** @description Display name. */
      name: string;
      /** @description What the agent is doing. */
      status: components['schemas']['SessionStatus'];
      /** @description The backend it runs. */
      backend: components['schemas']['BackendName'];
      /** @description The backend's own session id; `null` until known. */
      backend_session_id: string | null;
      /** @description The model; `null` when unknown. */
      model: string | null;
      /** @description How it is run. */
      driver: components['schemas']['Driver'];
      /** @description Path of the repository; `null` outside one. */
      repo: string | null;
      /** @description Path of the worktree made for it; `null` when none was. */
      worktree: string | null;
      /** @description The branch it works on; `null` when none or unknown. */
      branch: string | null;
      /**
       * @description The branch that its worktree was made from, and that its work is merged into; `null` when
       *     no branch was checked out there. Absent without a worktree.
       */
      base_branch?: string | null;
      /** @description The commit that its worktree was made from. Absent without a worktree. */
      base_commit?: string;
      /** @description The directory it works in. */
      workdir: string;
      /** @description The first prompt. */
      prompt: string;
      /** @description Labels. */
      tags: components['schemas']['Tag'][];
      /** @description The session that started it; `null` when none. */
      parent_id: string | null;
      /** @description The sessions above it, `parent_id` first, also those that were deleted. Absent when none. */
      ancestors?: string[];
      /** @description Its process; `null` when none runs. */
      pid: number | null;
      /** @description How its process ended; `null` while it runs or when unknown. */
      exit_code: number | null;
      /** @description Whether it is restarted when its process ends with an error. */
      auto_restart: boolean;
      /** @description How often it was restarted. */
      restart_count: number;
      /** @description The pipeline it belongs to; `null` when none. */
      pipeline_id: string | null;
      /** @description The job it runs; `null` when none. */
      job_id: string | null;
      /** @description The plan it works for. Absent when none. */
      plan_id?: string;
      /** @description The task of that plan. Absent when none. */
      task_key?: string;
      /** @description Tokens in its context; `null` when unknown. */
      context_tokens: number | null;
      /**
       * @description Tokens that the context of its model can hold; null or absent when unknown. Percentages
       *     such as `tokens.warn_pct` count from it.
       */
      context_window?: number | null;
      /** @description Its context size against the thresholds. */
      context_state: components['schemas']['ContextState'];
      /** @description Its override of forced compaction. */
      force_compact: components['schemas']['ForceCompactChoice'];
      /**
       * Format: date-time
       * @description When the provider's limit ends; `null` when there is none.
       */
      limited_until: string | null;
      /** @description What last went wrong; `null` when nothing did. */
      last_error: string | null;
      /** @description When it took its status. */
      status_since: components['schemas']['Timestamp'];
      /**
       * @description The error that ended the last turn of an idle agent, as its provider or command line
       *     reported it; null when the turn ended well. The queue and pipelines count such a turn
       *     as failed.
       */
      turn_error?: string | null;
      /** @description Most dollars for it and the agents that it starts; null or absent: no limit. */
      budget_usd?: number | null;
      /**
       * Format: date-time
       * @description When `:merge` last took its branch into the base of this clone; null or absent when it
       *     has worked or committed since, or was never merged so. The board shows such a session
       *     at rest as done.
       */
      merged_at?: string | null;
      /** @description The server of its worktree that `:serve` started; null or absent: none. */
      serve?: components['schemas']['SessionServer'] | null;
      /** @description The queue task that it works on; absent for none. */
      task?: components['schemas']['SessionTask'];
      /** @description What the agent says of itself, with the driver `acp`; else absent. */
      acp?: components['schemas']['AcpFacts'];
      /** @description The evidence for its status; `null` when there is none yet. */
      status_reason: string | null;
      /** @description When it was spawned. */
      created_at: components['schemas']['Timestamp'];
      /** @description When it last changed. */
      updated_at: components['schemas']['Timestamp'];
    };
    /** @description The server of a session's worktree. */
    SessionServer: {
      /** @description Where it is reached on the daemon's machine. */
      url: string;
      /** @description Its port, which it finds in `PORT`. */
      port: number;
      /** @description Its process. */
      pid: number;
      /** @description The command that runs. */
      command: string;
    };
    /** @description The bytes of a backup file. */
    BackupFile: string;
    /** @description What a terminal shows. */
    SessionScreen: {
      /** @description Its lines from the top, without blank ones at the end, with SGR sequences for colours. */
      lines: string[];
    };
    /** @description The attempt of a queue task that a session is. Sessions of one task are its attempts. */
    SessionTask: {
      /** @description The task. */
      id: string;
      /** @description Its queue. */
      queue: string;
      /** @description Which attempt it is, from 1. */
      attempt: number;
    };
    /** @description Sessions, newest first. */
    SessionList: {
      /** @description The sessions. */
      sessions: components['schemas']['Session'][];
    };
    /**
     * @description What a session needs next.
     * @enum {string}
     */
    BoardColumnName: 'queued' | 'working' | 'needs_you' | 'review' | 'done';
    /** @description The sessions in columns. */
    Board: {
      /** @description All columns, from left to right. */
      columns: components['schemas']['BoardColumn'][];
    };
    /** @description One column of the board. */
    BoardColumn: {
      /** @description Which column it is. */
      name: components['schemas']['BoardColumnName'];
      /** @description Its sessions, newest first. */
      sessions: components['schemas']['Session'][];
    };
    /** @description Part of a session's output. */
    SessionOutput: {
      /** @description Lines without control sequences, oldest first. */
      lines: string[];
      /** @description Pass it as `after` to read on. */
      next: number;
    };
    /** @description What to commit. */
    CommitRequest: {
      /** @description The commit message; default: the name of the session. */
      message?: string;
      /**
       * @description Go on although the agent works.
       * @default false
       */
      force?: boolean;
    };
    /** @description A commit of a session. */
    SessionCommit: {
      /** @description The session's id. */
      session_id: string;
      /** @description The branch of the session; `null` when none is checked out. */
      branch: string | null;
      /** @description The new commit. */
      commit: string;
      /** @description Its message. */
      message: string;
      /** @description Number of files in it. */
      file_count: number;
    };
    /** @description Where to push. */
    PushRequest: {
      /** @description Name of a remote; default: the remote that the branch tracks, or `origin`. */
      remote?: string;
      /**
       * @description Replace the remote branch after a rebase, unless somebody else has moved it.
       * @default false
       */
      force?: boolean;
    };
    /** @description A pushed branch. */
    SessionPush: {
      /** @description The session's id. */
      session_id: string;
      /** @description The branch of the session. */
      branch: string;
      /** @description The remote. */
      remote: string;
      /** @description The commit that the remote branch is at now. */
      commit: string;
    };
    /** @description The pull request. */
    OpenPrRequest: {
      /** @description Its title; default: the name of the session. */
      title?: string;
      /** @description Its text; default: empty. */
      body?: string;
      /**
       * @description Open it as a draft.
       * @default false
       */
      draft?: boolean;
      /** @description The base, instead of the branch that the worktree was made from or the default branch. */
      base?: components['schemas']['GitRevision'];
    };
    /** @description A pull request of a session. */
    SessionPullRequest: {
      /** @description The session's id. */
      session_id: string;
      /** @description The branch of the session. */
      branch: string;
      /** @description The branch it is to be merged into; `null`: the default of the remote. */
      base: string | null;
      /** @description Whether it is a draft. */
      draft: boolean;
      /** @description Its title. */
      title: string;
      /**
       * Format: uri
       * @description Its address.
       */
      url: string;
    };
    /**
     * @description How commits are taken into the base.
     * @enum {string}
     */
    MergeStrategy: 'merge' | 'squash' | 'rebase';
    /** @description How to merge. */
    MergeRequest: {
      /**
       * @description `merge`: a merge commit; `squash`: one commit; `rebase`: the commits one by one.
       * @default merge
       */
      strategy?: components['schemas']['MergeStrategy'];
      /** @description Message of the merge or squash commit; default: made from the branch and its commits. */
      message?: string;
      /** @description The base, instead of the branch that the worktree was made from or the default branch. */
      base?: components['schemas']['GitRevision'];
      /**
       * @description Go on although the agent works.
       * @default false
       */
      force?: boolean;
    };
    /** @description A merged branch. */
    SessionMerge: {
      /** @description The session's id. */
      session_id: string;
      /** @description How it was merged. */
      strategy: components['schemas']['MergeStrategy'];
      /** @description The branch of the session. */
      branch: string;
      /** @description The branch it was merged into. */
      base: string;
      /** @description The commit of the base before. */
      before: string;
      /** @description The commit of the base now. */
      commit: string;
    };
    /** @description Where to rebase to. */
    RebaseRequest: {
      /** @description The base, instead of the branch that the worktree was made from or the default branch. */
      base?: components['schemas']['GitRevision'];
      /**
       * @description Go on although the agent works.
       * @default false
       */
      force?: boolean;
    };
    /** @description A rebased branch. */
    SessionRebase: {
      /** @description The session's id. */
      session_id: string;
      /** @description The branch of the session. */
      branch: string;
      /** @description The base by name; `null` when it is a commit. */
      base: string | null;
      /** @description The commit of the branch before. */
      before: string;
      /** @description The commit of the branch now. */
      commit: string;
      /** @description Number of commits replayed; 0 when the branch was up to date. */
      commit_count: number;
    };
    /** @description A branch, tag or commit. */
    GitRevision: string;
    /** @description What a session changed since its branch left the base. */
    SessionDiff: {
      /** @description The session's id. */
      session_id: string;
      /** @description The branch in its workspace; `null` when none is checked out. */
      branch: string | null;
      /** @description The commit in its workspace; `null` when there is none yet. */
      head: string | null;
      /** @description What it is compared with, by name; `null` when there is no base branch. */
      base: string | null;
      /** @description The commit that the difference starts at; `null` when there is none. */
      base_commit: string | null;
      /** @description Number of files listed. */
      file_count: number;
      /** @description Added lines, whether shown or not. */
      additions: number;
      /** @description Deleted lines, whether shown or not. */
      deletions: number;
      /** @description Whether lines or files are left out. */
      truncated: boolean;
      /** @description The changed files, in the order of git. */
      files: components['schemas']['DiffFile'][];
    };
    /** @description One changed file. */
    DiffFile: {
      /**
       * @description Path in the repository. One that is not UTF-8 is shown as git quotes it, such as
       *     `"caf\351.txt"`.
       */
      path: string;
      /** @description The path before a rename or copy; `null` otherwise. */
      old_path: string | null;
      /**
       * @description What happened to it. A new file that git does not track yet is `added`.
       * @enum {string}
       */
      status: 'added' | 'modified' | 'deleted' | 'renamed' | 'copied' | 'type_changed';
      /** @description File mode in the base, such as `100644`; `null` for an added file. */
      old_mode: string | null;
      /** @description File mode now; `null` for a deleted file. */
      new_mode: string | null;
      /** @description Whether it is a binary file, which has no hunks. */
      binary: boolean;
      /** @description Added lines; 0 for a binary file. */
      additions: number;
      /** @description Deleted lines; 0 for a binary file. */
      deletions: number;
      /** @description The changes, from the start of the file. */
      hunks: components['schemas']['DiffHunk'][];
    };
    /** @description One hunk of a unified diff. */
    DiffHunk: {
      /** @description Its first line in the base. */
      old_start: number;
      /** @description Number of its lines in the base. */
      old_lines: number;
      /** @description Its first line now. */
      new_start: number;
      /** @description Number of its lines now. */
      new_lines: number;
      /** @description The function or section that it is in; may be empty. */
      heading: string;
      /**
       * @description Lines as in a unified diff: a space, `+` or `-` in front, and
       *     `\ No newline at end of file` after a last line without one.
       */
      lines: string[];
    };
    /** @description The text to send. */
    SendRequest: {
      /** @description The text, sent as one paste followed by Enter. Of control characters a terminal gets only line breaks and tabs; others are refused. */
      text: string;
    };
    /** @description What became of a deleted session. */
    SessionDeletion: {
      /** @description The session's id. */
      id: string;
      /**
       * @description Always `true`.
       * @constant
       */
      deleted: true;
      /** @description Path of its worktree; `null` when it had none. */
      worktree: string | null;
      /** @description Whether the worktree is still there. */
      worktree_kept: boolean;
      /** @description Why it was kept; `null` when it was not. */
      reason: string | null;
    };
    /** @description The new override. */
    SetForceCompactRequest: {
      /** @description The override. */
      state: components['schemas']['ForceCompactChoice'];
    };
    /** @description An agent's override of forced compaction and what it comes to. */
    ForceCompactState: {
      /** @description The session's id. */
      id: string;
      /** @description The override. */
      state: components['schemas']['ForceCompactChoice'];
      /** @description Whether forced compaction is on for this agent. */
      effective: boolean;
    };
    /**
     * @description `success`: every dependency is done. `failure`: every dependency has ended and at least one
     *     failed. `always`: every dependency has ended. A job whose condition cannot come true is
     *     skipped.
     * @enum {string}
     */
    RunIf: 'success' | 'failure' | 'always';
    /** @description A job's id, unique in its pipeline. */
    JobId: string;
    /** @description One job to run. */
    JobDefinition: {
      /** @description The job's id. */
      id: components['schemas']['JobId'];
      /** @description The prompt of the job. */
      prompt: components['schemas']['Prompt'];
      /** @description The backend to run; absent means the default at the time the job starts. */
      backend?: string;
      /**
       * @description The jobs that must end first.
       * @default []
       */
      depends_on?: components['schemas']['JobId'][];
      /**
       * @description When to run once they have.
       * @default success
       */
      run_if?: components['schemas']['RunIf'];
    };
    /** @description Jobs and how they depend on one another. */
    PipelineDefinition: {
      /** @description Display name. */
      name: string;
      /** @description Path of the git repository the jobs work in; must exist. */
      repo?: string;
      /**
       * @description Whether to start at once.
       * @default true
       */
      start?: boolean;
      /** @description The jobs; without a cycle. */
      jobs: components['schemas']['JobDefinition'][];
    };
    /**
     * @description `needs_attention`: the job's agent waits for a person.
     * @enum {string}
     */
    JobStatus: 'pending' | 'running' | 'done' | 'failed' | 'skipped' | 'needs_attention';
    /** @description One job of a pipeline. */
    Job: {
      /** @description The job's id. */
      id: components['schemas']['JobId'];
      /** @description The prompt of the job. */
      prompt: string;
      /** @description The backend it runs or will run; `null` means the default. */
      backend: string | null;
      /** @description The jobs that must end first. */
      depends_on: components['schemas']['JobId'][];
      /** @description When it runs once they have. */
      run_if: components['schemas']['RunIf'];
      /** @description Status. */
      status: components['schemas']['JobStatus'];
      /** @description Its session; `null` before it starts. */
      session_id: string | null;
      /** @description The end of what its agent said; `null` before it ends. */
      output: string | null;
    };
    /**
     * @description `paused`: held back by the budget gate. `done`: every job is done or skipped. `stalled`: no
     *     job runs and none can start, because one failed or needs attention.
     * @enum {string}
     */
    PipelineStatus: 'pending' | 'running' | 'paused' | 'done' | 'stalled' | 'canceled';
    /** @description A pipeline and its jobs. */
    Pipeline: {
      /** @description The pipeline's id. */
      id: string;
      /** @description Display name. */
      name: string;
      /** @description Path of the repository; `null` when none is named. */
      repo: string | null;
      /** @description Status. */
      status: components['schemas']['PipelineStatus'];
      /** @description The jobs, in the order given. */
      jobs: components['schemas']['Job'][];
      /** @description When it was created. */
      created_at: components['schemas']['Timestamp'];
      /** @description When it last changed. */
      updated_at: components['schemas']['Timestamp'];
    };
    /** @description Pipelines, newest first. */
    PipelineList: {
      /** @description The pipelines. */
      pipelines: components['schemas']['Pipeline'][];
    };
    /** @description One task of a plan. Unless a person does it, an agent gets its prompt. */
    PlanTaskDefinition: {
      /** @description The task's key, unique in its plan. */
      key: components['schemas']['JobId'];
      /** @description What it is about, in one line; absent means the key. */
      title?: string;
      /** @description What to do. A task for a person may leave it out. */
      prompt?: components['schemas']['Prompt'];
      /**
       * @description `person`: it is left to people, and to agents that claim it by its key; the others are done by agents that the daemon starts.
       * @default agent
       * @enum {string}
       */
      assignee?: 'agent' | 'person';
      /** @description The backend to run; absent, `any` or `any free` means any that is free: installed, enabled, not limited, with the fewest running agents. */
      backend?: string;
      /** @description Path of the git repository; absent means that of the plan. */
      repo?: string;
      /**
       * @description Keys of the tasks that must be done first.
       * @default []
       */
      depends_on?: components['schemas']['JobId'][];
      /** @description Command of the shell that checks the work, run in its worktree; a code other than 0 fails the task. */
      verify?: string;
      /** @description Backends that get the same prompt, each in a worktree of its own; one result is picked, by a person or by the `judge`. */
      race?: components['schemas']['RaceBackends'] | components['schemas']['Race'];
      /** @description A second agent that reviews the changes. */
      review?: components['schemas']['PlanReview'];
      /** @description What wakes the session after its work: failed checks of CI, and review comments on the pull request. */
      feedback?: components['schemas']['FeedbackSources'] | components['schemas']['Feedback'];
      /**
       * @description Whether the branch is merged into the base when the checks are green: after a yes to a question of kind `merge`, at once, or not at all.
       * @default never
       * @enum {string}
       */
      merge?: 'ask' | 'auto' | 'never';
      /** @description Most dollars for each of its agents and those that they start. */
      budget_usd?: number;
    };
    /** @description The backends of a race. */
    RaceBackends: string[];
    /** @description A race with a judge. */
    Race: {
      /** @description The backends. */
      backends: components['schemas']['RaceBackends'];
      /** @description The backend whose agent picks; absent means that a person does. */
      judge?: string;
    };
    /** @description A review by a second agent. */
    PlanReview: {
      /** @description The backend of the reviewer. */
      by: string;
      /**
       * @description Most reviews. Its findings go back to the author until a line of its last message is `DONE`.
       * @default 3
       */
      rounds?: number;
    };
    /** @description Where feedback comes from. */
    FeedbackSources: ('ci' | 'pr')[];
    /** @description Feedback with a number of rounds. */
    Feedback: {
      /** @description Where it comes from. */
      from: components['schemas']['FeedbackSources'];
      /**
       * @description How often the session is woken at most.
       * @default 3
       */
      rounds?: number;
    };
    /** @description Tasks and how they depend on one another. */
    PlanDefinition: {
      /** @description Display name. */
      title: string;
      /** @description Path of the git repository that the tasks work in; must exist. Without one, the agents of an agent work where it works. */
      repo?: string;
      /** @description Branch that the work starts from and is merged into; absent means the one that is checked out in the repository. */
      base?: components['schemas']['BranchName'];
      /** @description The tasks; without a cycle. */
      tasks: components['schemas']['PlanTasks'];
    };
    /** @description Tasks of a plan. */
    PlanTasks: components['schemas']['PlanTaskDefinition'][];
    /**
     * @description `pending`: it waits for other tasks. `ready`: it can be claimed. `waiting`: for a person, who
     *     picks, answers or has claimed it. `skipped`: a task that it depends on failed.
     * @enum {string}
     */
    PlanTaskStatus:
      'pending' | 'ready' | 'running' | 'waiting' | 'done' | 'failed' | 'skipped' | 'canceled';
    /**
     * @description `failed`: nothing can run any more, because a task failed.
     * @enum {string}
     */
    PlanStatus: 'running' | 'done' | 'failed' | 'canceled';
    /** @description The result of `verify`. */
    PlanCheck: {
      /** @description The command. */
      command: string;
      /** @description Whether its code was 0. */
      passed: boolean;
      /** @description Its code; `null` when it did not end by itself. */
      exit_code: number | null;
      /** @description The end of its output, at most 16 KiB. */
      output: string;
    };
    /** @description One session of a race. */
    RaceEntry: {
      /** @description Its session; `null` before it starts. */
      session_id: string | null;
      /** @description Its backend. */
      backend: string;
      /** @description Its branch. */
      branch: string | null;
      /**
       * @description Whether it can be picked.
       * @enum {string}
       */
      status: 'running' | 'done' | 'failed';
      /** @description The result of its checks; `null` when there are none. */
      verify: components['schemas']['PlanCheck'] | null;
      /** @description The size of its changes; `null` when it is not known. */
      diff: {
        /** @description Changed files. */
        files: number;
        /** @description Added lines. */
        additions: number;
        /** @description Removed lines. */
        deletions: number;
      } | null;
      /** @description What it cost; `null` when it is not known. */
      exact_usd: number | null;
      /** @description How long it worked; `null` until it has ended. */
      duration_ms: number | null;
      /** @description Whether it is the one that was picked. */
      picked: boolean;
      /** @description Why it failed; `null` when it did not. */
      error?: string | null;
    };
    /** @description One task of a plan. */
    PlanTask: {
      /** @description The task's key. */
      key: components['schemas']['JobId'];
      /** @description What it is about. */
      title: string;
      /** @description Status. */
      status: components['schemas']['PlanTaskStatus'];
      /** @description Its sessions, in the order of their start. */
      sessions: string[];
      /** @description The branch with its work; `null` when there is none yet. */
      branch: string | null;
      /** @description The last message of its agent, at most 16 KiB; why it failed; what a person wrote. `null` before it ends. */
      result: string | null;
      /** @description The result of its checks; `null` when there are none yet. */
      verify: components['schemas']['PlanCheck'] | null;
      /** @description What to do. */
      prompt?: string;
      /**
       * @description Who does it.
       * @enum {string}
       */
      assignee?: 'agent' | 'person';
      /** @description Keys of the tasks that must be done first. */
      depends_on?: components['schemas']['JobId'][];
      /** @description Who has claimed it; `null` when nobody has. */
      claimed_by?: string | null;
      /** @description What it waits for, such as `pick` or `merge`; `null` when for nothing. */
      waiting_for?: string | null;
      /** @description The sessions of its race; empty without one. */
      race?: components['schemas']['RaceEntry'][];
      /** @description Whether its branch was merged into the base. */
      merged?: boolean;
    };
    /** @description A plan and its tasks. */
    Plan: {
      /** @description The plan's id. */
      id: string;
      /** @description Display name. */
      title: string;
      /** @description Status. */
      status: components['schemas']['PlanStatus'];
      /** @description Path of the repository; `null` when none is named. */
      repo?: string | null;
      /** @description The branch that work is merged into; `null` when none is named. */
      base?: string | null;
      /** @description The session of the agent that made it; `null` when a person did. */
      created_by?: string | null;
      /** @description The tasks, in the order given. */
      tasks: components['schemas']['PlanTask'][];
      /** @description When it was created. */
      created_at?: components['schemas']['Timestamp'];
      /** @description When it last changed. */
      updated_at?: components['schemas']['Timestamp'];
    };
    /** @description Plans, newest first. */
    PlanList: {
      /** @description The plans. */
      plans: components['schemas']['Plan'][];
    };
    /** @description The winner of a race. */
    PickRequest: {
      /** @description The session whose work is taken, by its id or name; it must have ended well. */
      session_id: string;
    };
    /** @description Who claims a task. */
    ClaimTaskRequest: {
      /** @description Name of the claimant; absent means that of the caller. An agent with its own token is always named by its session. */
      by?: string;
    };
    /** @description The end of a claimed task. */
    CompleteTaskRequest: {
      /** @description Name of the claimant, as in the claim. */
      by?: string;
      /** @description What was done, for the tasks that depend on it; cut at 16 KiB. */
      result?: string;
      /** @description The branch with the work. */
      branch?: components['schemas']['BranchName'];
      /**
       * @description Whether it could not be done.
       * @default false
       */
      failed?: boolean;
    };
    /** @description A task that can be claimed. */
    ReadyTask: {
      /** @description Its plan. */
      plan_id: string;
      /** @description The title of its plan. */
      plan_title: string;
      /** @description Its key. */
      key: components['schemas']['JobId'];
      /** @description What it is about. */
      title: string;
      /** @description What to do, with the results of the tasks that it depends on. */
      prompt: string;
      /**
       * @description Whom it is left to.
       * @enum {string}
       */
      assignee: 'agent' | 'person';
      /** @description Path of its repository; `null` when none is named. */
      repo: string | null;
      /** @description Keys of the tasks that were done first. */
      depends_on: components['schemas']['JobId'][];
    };
    /** @description Tasks that can be claimed, oldest first. */
    ReadyTaskList: {
      /** @description The tasks. */
      tasks: components['schemas']['ReadyTask'][];
    };
    /** @description What to think about. */
    ThinkRequest: {
      /** @description The prompt. */
      prompt: components['schemas']['Prompt'];
    };
    /**
     * @description Result of a candidate.
     * @enum {string}
     */
    ThinkOutcome:
      | 'answered'
      | 'rate_limited'
      | 'spend_limited'
      | 'unauthenticated'
      | 'timeout'
      | 'unavailable'
      | 'error';
    /** @description One candidate that was tried. */
    ThinkAttempt: {
      /** @description The backend. */
      id: components['schemas']['BackendName'];
      /** @description Its result. */
      outcome: components['schemas']['ThinkOutcome'];
      /** @description Why it did not answer; `null` when it did. */
      reason: string | null;
    };
    /** @description The answer of the first candidate that gave one. */
    ThinkResult: {
      /** @description The backend that answered; `null` when none did. */
      backend: string | null;
      /** @description Its answer; `null` when none did. */
      text: string | null;
      /** @description Whether every candidate was exhausted. */
      degraded: boolean;
      /** @description The candidates in the order tried. */
      tried: components['schemas']['ThinkAttempt'][];
    };
    /**
     * Format: binary
     * @description The task's payload, unchanged.
     */
    QueueTaskPayload: string;
    /** @description The session that works on the task. */
    QueueTaskAccepted: {
      /** @description The task's id at the queue. */
      task_id: string;
      /** @description The session's id. */
      session_id: string;
    };
    /**
     * @description What a note is about.
     * @enum {string}
     */
    NoteKind:
      | 'waiting_for_input'
      | 'stuck_idle'
      | 'orphaned'
      | 'errored'
      | 'context_warning'
      | 'context_critical'
      | 'ci_failed'
      | 'branch_merged'
      | 'branch_behind';
    /**
     * @description Severity.
     * @enum {string}
     */
    Severity: 'info' | 'warning' | 'critical';
    /** @description One notification. */
    InboxNote: {
      /** @description The note's id. */
      id: string;
      /** @description When it was written. */
      ts: components['schemas']['Timestamp'];
      /** @description What it is about. */
      kind: components['schemas']['NoteKind'];
      /** @description Severity. */
      severity: components['schemas']['Severity'];
      /** @description The note in one line. */
      title: string;
      /** @description The rest of it; may be empty. */
      body: string;
      /** @description The session it is about; `null` when none. */
      agent_id: string | null;
      /** @description Whether it was read. */
      read: boolean;
      /** @description The question to answer, in notes of agents that wait; else absent. */
      question_id?: string;
    };
    /** @description Notes, newest first. */
    Inbox: {
      /** @description The notes. */
      notes: components['schemas']['InboxNote'][];
    };
    /**
     * @description `open`: the agent waits for the answer. `answered`: it has one. `closed`: the agent ended or
     *     took the question back.
     * @enum {string}
     */
    QuestionStatus: 'open' | 'answered' | 'closed';
    /**
     * @description `permission`: may the agent do this. `choice`: one of several options. `text`: the answer
     *     is typed. `merge`: may the branch of a plan's task be merged.
     * @enum {string}
     */
    QuestionKind: 'permission' | 'choice' | 'text' | 'merge';
    /**
     * @description What choosing the option means; `choice` when it grants and refuses nothing.
     * @enum {string}
     */
    QuestionOptionKind: 'allow_once' | 'allow_always' | 'reject' | 'reject_always' | 'choice';
    /** @description One possible answer. */
    QuestionOption: {
      /** @description The id to answer with. */
      id: string;
      /** @description The option as the agent words it. */
      label: string;
      /** @description What choosing it means. */
      kind: components['schemas']['QuestionOptionKind'];
    };
    /** @description A permission request or a choice of an agent. */
    Question: {
      /** @description The question's id. */
      id: string;
      /** @description The session that asks. */
      session_id: string;
      /** @description Whether it still waits for an answer. */
      status: components['schemas']['QuestionStatus'];
      /** @description What kind of answer it takes. */
      kind: components['schemas']['QuestionKind'];
      /** @description The question in one line. */
      title: string;
      /** @description The command, the diff or the file it is about; may be empty. */
      body: string;
      /** @description The tool that the agent wants to use, as `permissions.policy` matches it; `null` when it is not known. */
      tool: string | null;
      /** @description The possible answers; empty for kind `text`. */
      options: components['schemas']['QuestionOption'][];
      /** @description When it was asked. */
      asked_at: components['schemas']['Timestamp'];
      /**
       * Format: date-time
       * @description When it was answered or closed; `null` while it is open.
       */
      answered_at: string | null;
      /** @description Who answered: `token`, `browser` or `anyone` (the caller of the API), the same with ` (mcp)` behind it, `terminal` for an answer typed at the agent itself, or `policy`. `null` while it is open and when it was closed. */
      answered_by: string | null;
      /** @description The id of the chosen option, or the text; `null` when it is not known. */
      answer: string | null;
    };
    /** @description A question for a person. */
    AskRequest: {
      /** @description The session that asks, by its id or name; an agent's token may leave it out. */
      session_id?: string;
      /** @description The question in one line. */
      title: string;
      /**
       * @description What it is about.
       * @default
       */
      body?: string;
      /**
       * @description The possible answers; none means that any text is one.
       * @default []
       */
      options?: string[];
      /**
       * @description How long to wait for the answer.
       * @default 0
       */
      wait_ms?: number;
    };
    /** @description How long to wait. */
    WaitRequest: {
      /**
       * @description At most ten minutes.
       * @default 600000
       */
      timeout_ms?: number;
    };
    /** @description A session after a wait. */
    SessionWait: {
      /** @description The session as it is now. */
      session: components['schemas']['Session'];
      /** @description Whether it still works. */
      timed_out: boolean;
    };
    /** @description What an agent has done. */
    SessionSummary: {
      /** @description The session. */
      session: components['schemas']['Session'];
      /** @description Its last answer, or the end of its output; at most 16 KiB. */
      output: string;
      /** @description How much its branch differs from its base; `null` where it has none. */
      diff: {
        /** @description Changed files. */
        files: number;
        /** @description Added lines. */
        additions: number;
        /** @description Removed lines. */
        deletions: number;
      } | null;
    };
    /** @description Questions, newest first. */
    QuestionList: {
      /** @description The questions. */
      questions: components['schemas']['Question'][];
    };
    /** @description The answer; exactly one of the two. */
    AnswerRequest: {
      /** @description The id of the chosen option. */
      option_id?: string;
      /** @description The answer in words, for a question of kind `text`. */
      text?: string;
    };
    /** @description The agent an alert is about. */
    NotifiedAgent: {
      /** @description The session's id. */
      id: string;
      /** @description The session's name. */
      name: string;
      /** @description What it was doing. */
      status: components['schemas']['SessionStatus'];
    };
    /** @description An alert as it is sent to the webhook. */
    WebhookNotification: {
      /** @description Title and body as one text, for chat services. */
      text: string;
      /** @description The alert in one line. */
      title: string;
      /** @description The rest of it; may be empty. */
      body: string;
      /** @description The alert's id, the same on every retry. */
      id: string;
      /** @description What it is about. */
      kind: components['schemas']['NoteKind'];
      /** @description When it was raised. */
      ts: components['schemas']['Timestamp'];
      /** @description Severity. */
      severity: components['schemas']['Severity'];
      /** @description The agent it is about; `null` when none. */
      agent: components['schemas']['NotifiedAgent'] | null;
      /** @description The question to answer, in alerts of agents that wait; else absent. */
      question_id?: string;
      /** @description The same question with its options; absent when there is none. */
      question?: components['schemas']['Question'];
    };
    /** @description Server-sent events; each `data` line is one Event as JSON. */
    EventStream: string;
    /** @description One change. `type` says which. */
    Event:
      | components['schemas']['SessionChanged']
      | components['schemas']['BackendChanged']
      | components['schemas']['SettingsChanged']
      | components['schemas']['PipelineChanged']
      | components['schemas']['PlanChanged']
      | components['schemas']['NoteChanged']
      | components['schemas']['QuestionChanged']
      | components['schemas']['BranchChanged']
      | components['schemas']['MetricsSampled']
      | components['schemas']['ThingRemoved']
      | components['schemas']['ReportChanged'];
    /** @description What every event has. */
    EventBase: {
      /** @description The position in the stream, for `Last-Event-ID`. */
      id: string;
      /** @description When the change was made. */
      ts: components['schemas']['Timestamp'];
      /** @description The id of what changed; `null` when it has none. */
      key: string | null;
    };
    /** @description A session was spawned or changed. */
    SessionChanged: components['schemas']['EventBase'] & {
      /**
       * @description The type.
       * @constant
       */
      type: 'session.changed';
      /** @description The session as it is now. */
      data: components['schemas']['Session'];
    };
    /** @description A backend changed. */
    BackendChanged: components['schemas']['EventBase'] & {
      /**
       * @description The type.
       * @constant
       */
      type: 'backend.changed';
      /** @description The backend as it is now. */
      data: components['schemas']['BackendRow'];
    };
    /** @description The settings changed. */
    SettingsChanged: components['schemas']['EventBase'] & {
      /**
       * @description The type.
       * @constant
       */
      type: 'settings.changed';
      /** @description The settings as they are now. */
      data: components['schemas']['Settings'];
    };
    /** @description A pipeline was created or changed. */
    PipelineChanged: components['schemas']['EventBase'] & {
      /**
       * @description The type.
       * @constant
       */
      type: 'pipeline.changed';
      /** @description The pipeline as it is now. */
      data: components['schemas']['Pipeline'];
    };
    /** @description A plan was created or changed. */
    PlanChanged: components['schemas']['EventBase'] & {
      /**
       * @description The type.
       * @constant
       */
      type: 'plan.changed';
      /** @description The plan as it is now. */
      data: components['schemas']['Plan'];
    };
    /** @description A note was written or read. */
    NoteChanged: components['schemas']['EventBase'] & {
      /**
       * @description The type.
       * @constant
       */
      type: 'note.changed';
      /** @description The note as it is now. */
      data: components['schemas']['InboxNote'];
    };
    /** @description A question was asked, answered or closed. */
    QuestionChanged: components['schemas']['EventBase'] & {
      /**
       * @description The type.
       * @constant
       */
      type: 'question.changed';
      /** @description The question as it is now. */
      data: components['schemas']['Question'];
    };
    /** @description The status of a branch changed. */
    BranchChanged: components['schemas']['EventBase'] & {
      /**
       * @description The type.
       * @constant
       */
      type: 'branch.changed';
      /** @description The status of the branch now. */
      data: components['schemas']['BranchStanding'];
    };
    /** @description The recorder took a sample. */
    MetricsSampled: components['schemas']['EventBase'] & {
      /**
       * @description The type.
       * @constant
       */
      type: 'metrics.sampled';
      /** @description The sample. */
      data: components['schemas']['Metrics'];
    };
    /** @description The thing named by `key` is gone. */
    ThingRemoved: components['schemas']['EventBase'] & {
      /**
       * @description The type.
       * @enum {string}
       */
      type:
        | 'session.removed'
        | 'backend.removed'
        | 'pipeline.removed'
        | 'plan.removed'
        | 'note.removed'
        | 'branch.removed'
        | 'question.removed';
      /** @description Nothing is left of it. */
      data: null;
    };
    /** @description A report has new figures, or the stream starts over; read again. */
    ReportChanged: components['schemas']['EventBase'] & {
      /**
       * @description `stream.reset`: the id given is too old or unknown, so read everything again.
       * @enum {string}
       */
      type: 'usage.changed' | 'savings.changed' | 'spend.changed' | 'stream.reset';
      /** @description Nothing; read the report. */
      data: null;
    };
    /**
     * @description Where a value came from.
     * @enum {string}
     */
    ConfigSource: 'default' | 'file' | 'environment' | 'flag';
    /** @description One setting. */
    ConfigEntry: {
      /** @description The dotted key, such as `tokens.warn`. */
      key: string;
      /** @description The live value, of any type. A secret reads `********` when it is set and `null` when it is not. */
      value: unknown;
      /** @description Where it came from. */
      source: components['schemas']['ConfigSource'];
      /** @description The file, environment variable or flag; `null` for a default. */
      origin: string | null;
      /** @description Whether the value is masked. */
      secret: boolean;
      /** @description What it does. */
      description?: string;
      /** @description The default as written in the file; `null` when there is none. */
      default?: unknown;
      /** @description What a value must be, in words: `a duration such as 15m`. */
      expected?: string;
      /** @description The values of a choice. */
      choices?: string[];
      /** @description Whether `PATCH /api/v1/config` can change it. */
      editable?: boolean;
      /** @description Whether a change applies only at the next start. */
      needs_restart?: boolean;
      /** @description Whether the config file has another value, which is not applied yet. */
      pending?: boolean;
    };
    /** @description Settings to change. */
    UpdateConfigRequest: {
      /** @description New values by dotted key, as in the file; `null` restores the default. */
      values?: {
        [key: string]: unknown;
      };
      /** @description The `revision` that was read; 409 CONFIG_CONFLICT if the file has another. */
      revision?: string;
      /**
       * @description Check and answer what would be, without writing.
       * @default false
       */
      validate_only?: boolean;
    };
    /** @description The live configuration. */
    ConfigView: {
      /** @description The file that was read; `null` when there is none. */
      config_file: string | null;
      /** @description Where the daemon keeps its data. */
      data_dir: string;
      /** @description Every setting, sorted by key. */
      entries: components['schemas']['ConfigEntry'][];
      /** @description Unknown and deprecated keys, in words. */
      warnings: string[];
      /** @description Changes with each change of the config file. `null` when the daemon has no config file to write. */
      revision?: string | null;
    };
    /** @description How long sessions took. */
    DurationStats: {
      /** @description The backend or repository; `all` for everything. */
      key: string;
      /** @description Ended sessions counted. */
      sessions: number;
      /** @description Median; `null` when none ended. */
      p50_ms: number | null;
      /** @description 90th percentile; `null` when none ended. */
      p90_ms: number | null;
      /** @description The longest; `null` when none ended. */
      max_ms: number | null;
      /** @description All together. */
      total_ms: number;
    };
    /** @description How long sessions took, over all and apart. */
    DurationInsights: {
      /** @description Over all sessions. */
      overall: components['schemas']['DurationStats'];
      /** @description By backend, the longest total first. */
      by_backend: components['schemas']['DurationStats'][];
      /** @description By repository, the longest total first. */
      by_repo: components['schemas']['DurationStats'][];
    };
    /** @description One hour of the local day, summed over all days. */
    BusyHour: {
      /** @description The hour. */
      hour: number;
      /** @description Sessions at work in it. */
      sessions: number;
      /** @description Time agents worked in it. */
      busy_ms: number;
    };
    /** @description How often sessions ended badly. */
    ErrorRate: {
      /**
       * @description What the row groups by.
       * @enum {string}
       */
      by: 'all' | 'backend' | 'repo' | 'model';
      /** @description The backend, repository or model; `all` for everything. */
      key: string;
      /** @description Ended sessions. */
      sessions: number;
      /** @description Those errored or orphaned. */
      errors: number;
      /** @description Errors per session; `null` when none ended. */
      rate: number | null;
    };
    /** @description Two files that sessions tend to edit together. */
    CoEditedFiles: {
      /** @description The repository. */
      repo: string;
      /** @description The two paths inside the repository, in order. */
      files: string[];
      /** @description Sessions that edited both. */
      sessions: number;
      /** @description Their part of the sessions that edited either. */
      share: number;
    };
    /** @description Two sessions that ran one after the other and could have run side by side. */
    ParallelCandidate: {
      /** @description The repository. */
      repo: string;
      /** @description The session that ran first. */
      first_id: string;
      /** @description Its name. */
      first_name: string;
      /** @description The session that ran after it. */
      second_id: string;
      /** @description Its name. */
      second_name: string;
      /** @description Time that would have been saved: the shorter of the two. */
      saved_ms: number;
      /** @description Why they could, such as having no file in common. */
      reason: string;
    };
    /** @description Patterns found in the history of sessions. */
    Insights: {
      /**
       * Format: date-time
       * @description Where the history starts; `null` means all time.
       */
      since: string | null;
      /** @description When it was computed. */
      generated_at: components['schemas']['Timestamp'];
      /** @description Sessions that were read. */
      sessions: number;
      /** @description How long sessions took. */
      durations: components['schemas']['DurationInsights'];
      /** @description Hours with any work, the busiest first. */
      busiest_hours: components['schemas']['BusyHour'][];
      /** @description Error rates, the row for everything first, then the highest first. */
      error_rates: components['schemas']['ErrorRate'][];
      /** @description Pairs of files, the most frequent first. */
      co_edited_files: components['schemas']['CoEditedFiles'][];
      /** @description Pairs of sessions, the most time saved first. */
      parallel_candidates: components['schemas']['ParallelCandidate'][];
    };
    /** @description One JSON-RPC message of the Model Context Protocol. */
    McpMessage: {
      /**
       * @description The JSON-RPC version.
       * @constant
       */
      jsonrpc: '2.0';
      /** @description Pairs a response with its request; a notification has none. */
      id?: string | number | null;
      /** @description The method, such as `tools/call`. */
      method?: string;
      /** @description The parameters. */
      params?: components['schemas']['McpValues'];
      /** @description The answer to a request. */
      result?: components['schemas']['McpValues'];
      /** @description Why there is no result. */
      error?: components['schemas']['McpError'];
    };
    /** @description Values as the protocol defines them for the method. */
    McpValues: {
      [key: string]: unknown;
    };
    /** @description A JSON-RPC error. */
    McpError: {
      /** @description The JSON-RPC error code. */
      code: number;
      /** @description What went wrong. */
      message: string;
      /** @description More about it, of any type. */
      data?: unknown;
    };
    /** @description A code that logs one browser in, once. */
    LoginCode: {
      /** @description The code, a secret until it is used. */
      code: string;
      /**
       * Format: date-time
       * @description When it stops working.
       */
      expires_at: string;
    };
    /** @description The code to exchange. */
    LoginRequest: {
      /** @description From `ctl open` or `POST /api/v1/login-codes`. */
      code: string;
    };
    /** @description Whether this browser is logged in. */
    LoginState: {
      /** @description Whether this browser is logged in. */
      logged_in: boolean;
      /**
       * Format: date-time
       * @description When the login ends.
       */
      expires_at: string | null;
    };
    /** @description One MCP message or, with older protocol versions, several. */
    McpPayload: components['schemas']['McpMessage'] | components['schemas']['McpMessage'][];
    /** @description Server-sent events; each `data` line is one MCP message. */
    McpStream: string;
  };
  responses: {
    /** @description The session as it is now. */
    SessionNow: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['Session'];
      };
    };
    /** @description The pipeline as it is now. */
    PipelineNow: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['Pipeline'];
      };
    };
    /** @description The plan as it is now. */
    PlanNow: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['Plan'];
      };
    };
    /** @description The file, with the media type of its kind. */
    StaticAsset: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'text/javascript': components['schemas']['FileText'];
        'application/json': components['schemas']['FileJson'];
        'text/css': components['schemas']['FileText'];
        'image/svg+xml': components['schemas']['FileText'];
        'image/png': components['schemas']['FileBytes'];
        'image/x-icon': components['schemas']['FileBytes'];
        'font/woff2': components['schemas']['FileBytes'];
        'application/octet-stream': components['schemas']['FileBytes'];
      };
    };
    /** @description A parameter or the body is wrong; `errors` names each place. */
    InvalidRequest: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The token is missing or unknown. */
    Unauthenticated: {
      headers: {
        'WWW-Authenticate': components['headers']['WwwAuthenticate'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The token is missing or unknown, or the signature does not verify. */
    UnauthenticatedOrBadSignature: {
      headers: {
        'WWW-Authenticate': components['headers']['WwwAuthenticate'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The Host or Origin is refused, or the token is read-only. */
    Forbidden: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The Host or Origin is refused, or the setting `savings` is off. */
    ForbiddenOrSavingsDisabled: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The Host or Origin is refused, the token is read-only, or the feature is switched off. */
    ForbiddenOrDisabled: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description There is no such file. */
    NotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The daemon does not pass this path on, or not by this method. */
    NotProxied: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description What the upstream answered, with its status, which may be any other too; its `application/problem+json` stays what it is. */
    Upstream: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/json': components['schemas']['UpstreamJson'];
        'application/x-ndjson': components['schemas']['UpstreamLines'];
      };
    };
    /** @description The server behind the daemon cannot be reached or does not know the daemon. */
    UpstreamFailed: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description No backend has this id. */
    BackendNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description No session has this id. */
    SessionNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description No pipeline has this id. */
    PipelineNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description No plan has this id, or the plan has no task with this key. */
    PlanNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description No note has this id. */
    NoteNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description No question has this id. */
    QuestionNotFound: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The question is not open any more, or the agent did not take the answer. */
    AnswerConflict: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The question has no such option, or takes no text. */
    UnknownOption: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The backend cannot be used for this. */
    BackendNotEligible: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The backend cannot be used, or the idempotency key was used for another body. */
    SpawnConflict: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The config file changed or cannot be written, or a setting is not editable. */
    ConfigRefused: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The name or prefix means several sessions. */
    SessionAmbiguous: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The session's status does not allow this. */
    SessionState: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The session has no git workspace, or git refused. */
    WorkspaceConflict: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The agent works, nothing is changed, or there is no git workspace. */
    CommitConflict: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description There is no git workspace, no gh, or gh refused. */
    PullRequestConflict: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The merge conflicts, or something is in the way. */
    MergeConflict: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The rebase conflicts, or something is in the way. */
    RebaseConflict: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The session is still spawning, or its backend cannot be used. */
    RestartConflict: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The pipeline's status does not allow this. */
    PipelineState: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The status of the plan or the task does not allow this. */
    PlanState: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The body is too long. */
    PayloadTooLarge: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The body's content type is not taken here. */
    UnsupportedMediaType: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description A spend cap is reached; repeat with `force` to continue. */
    BudgetConfirmationRequired: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['BudgetConfirmation'];
      };
    };
    /** @description This address sent too many wrong tokens. */
    TooManyAttempts: {
      headers: {
        'Retry-After': components['headers']['RetryAfter'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /**
     * @description A spend cap is reached, and the task is to wait in the queue without losing an attempt; or
     *     this address sent too many wrong tokens.
     */
    TooManyAttemptsOrBudgetExceeded: {
      headers: {
        'Retry-After': components['headers']['RetryAfter'];
        /**
         * @description `true` where a spend cap is reached: the queue does not count the attempt.
         * @example true
         */
        'X-Queue-Defer'?: 'true';
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description An internal error of the daemon. */
    Internal: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
      };
    };
    /** @description The request is wrong, or the protocol refuses the message. */
    McpInvalid: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
        'application/json': components['schemas']['McpPayload'];
      };
    };
    /** @description The client does not accept what the protocol answers. */
    McpNotAcceptable: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'];
        'application/json': components['schemas']['McpPayload'];
      };
    };
  };
  parameters: {
    /**
     * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
     * @example v1/admin/queues
     */
    UpstreamPath: string;
    /**
     * @description The backend's id, as in the registry.
     * @example claude
     */
    BackendId: string;
    /**
     * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
     *     live session that has it, or else the ended one. More than one match is 409
     *     SESSION_AMBIGUOUS.
     * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
     */
    SessionId: string;
    /**
     * @description The pipeline's id.
     * @example 01K9ZR0B1C2D3E4F5G6H7J8K9M
     */
    PipelineId: string;
    /**
     * @description The plan's id.
     * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
     */
    PlanId: string;
    /**
     * @description The key of the task in its plan.
     * @example upload
     */
    PlanTaskKey: string;
    /**
     * @description The question's id.
     * @example 01K9ZT4Q6R8S0T2V4W6X8Y0Z1A
     */
    QuestionId: string;
    /**
     * @description The file's name.
     * @example index-4f2a9c.js
     */
    AssetFile: string;
    /**
     * @description The id of the last event received; the stream goes on after it.
     * @example 18244
     */
    LastEventId: string;
  };
  requestBodies: never;
  headers: {
    /**
     * @description The path of what was created.
     * @example /api/v1/sessions/01K9ZQ4M7T3V8X2B6C0D5E1F9G
     */
    Location: string;
    /**
     * @description `true` when the key was seen before and nothing new was started; absent otherwise.
     * @example true
     */
    IdempotentReplayed: 'true';
    /**
     * @description Seconds to wait before the next try.
     * @example 30
     */
    RetryAfter: number;
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
  getHealth: {
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
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Health'];
        };
      };
      403: components['responses']['Forbidden'];
    };
  };
  getDocs: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The documentation page. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'text/html': components['schemas']['HtmlPage'];
        };
      };
      403: components['responses']['ForbiddenOrDisabled'];
      500: components['responses']['Internal'];
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
      /** @description The OpenAPI document. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/yaml': components['schemas']['YamlText'];
        };
      };
      403: components['responses']['ForbiddenOrDisabled'];
      500: components['responses']['Internal'];
    };
  };
  listBackends: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The registry. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Registry'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getUsage: {
    parameters: {
      query?: {
        /**
         * @description `true` bypasses the 60-second cache, but never a wait that the provider asked for.
         * @example true
         */
        refresh?: boolean;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The usage document, backends sorted by id. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['UsageDocument'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  rescanBackends: {
    parameters: {
      query?: {
        /**
         * @description `true` also runs the `--help` of programs that may speak the Agent Client Protocol themselves, and updates `acp` of their rows. Without it, rows of such programs are updated by the first spawn.
         * @example true
         */
        acp?: boolean;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The registry after the rescan. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Registry'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  setDefaultBackend: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SetDefaultRequest'];
      };
    };
    responses: {
      /** @description The registry with the new default. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Registry'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['BackendNotFound'];
      409: components['responses']['BackendNotEligible'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  setThinkingMode: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SetThinkingModeRequest'];
      };
    };
    responses: {
      /** @description The settings with the new mode. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Settings'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  updateBackend: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The backend's id, as in the registry.
         * @example claude
         */
        id: components['parameters']['BackendId'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['UpdateBackendRequest'];
      };
    };
    responses: {
      /** @description The backend as it is now. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['BackendRow'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['BackendNotFound'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getSavings: {
    parameters: {
      query?: {
        /** @description Count from here on. Absent means all time. */
        since?: components['schemas']['Since'];
        /** @description `day` or `hour` attaches a trend. Any other value attaches none and is not an error. */
        bucket?: string;
        /**
         * @description `1` attaches the retained pairs of raw and kept text; they are retained only while `savings_samples` is on.
         * @example 1
         */
        samples?: '0' | '1' | 'true' | 'false';
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The savings report. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SavingsReport'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrSavingsDisabled'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getUsageBlocks: {
    parameters: {
      query?: {
        /**
         * @description The id of the backend whose transcripts count.
         * @example codex
         */
        backend?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The blocks. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['UsageBlocks'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrSavingsDisabled'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getUsageValue: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A row for each backend, and one for all. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['UsageValue'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrSavingsDisabled'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getPrometheusMetrics: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The metrics. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example millrace_daemon_questions_waiting 0 */
          'text/plain': components['schemas']['PrometheusText'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  backupDaemon: {
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
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getSpend: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The spend rollup. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SpendRollup'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrSavingsDisabled'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getMetrics: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The metrics of this moment. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Metrics'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getMetricsHistory: {
    parameters: {
      query?: {
        /**
         * @description Samples from here on.
         * @example 6h
         */
        since?: string | components['schemas']['Window'] | components['schemas']['Timestamp'];
        /**
         * @description Width of one sample; at least 15 seconds. A bare number is seconds. Absent means the finest that fits.
         * @example 5m
         */
        step?: components['schemas']['Step'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The recorded samples. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['MetricsHistory'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  listBranches: {
    parameters: {
      query?: {
        /**
         * @description `true` refreshes before responding.
         * @example true
         */
        refresh?: boolean;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The statuses, sorted by agent id. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['BranchStandings'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  spawnSession: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description Makes a repeat safe for 24 hours: the same key with the same body answers the session it
         *     already started. Only a 201 is remembered, so a confirmation with `force` may reuse the
         *     key.
         * @example 6f1c2a52-spawn-1
         */
        'Idempotency-Key'?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SpawnRequest'];
      };
    };
    responses: {
      /** @description The session, just started. */
      201: {
        headers: {
          Location: components['headers']['Location'];
          'Idempotent-Replayed': components['headers']['IdempotentReplayed'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Session'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['BackendNotFound'];
      409: components['responses']['SpawnConflict'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      428: components['responses']['BudgetConfirmationRequired'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  listSessions: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The sessions. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionList'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getBoard: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The columns from left to right, newest session first. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Board'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  listPipelines: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The pipelines. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['PipelineList'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  createPipeline: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['PipelineDefinition'];
        'application/yaml': components['schemas']['PipelineDefinition'];
      };
    };
    responses: {
      /** @description The pipeline, running or (with `start` false) pending. */
      201: {
        headers: {
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Pipeline'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['BackendNotFound'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  think: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinkRequest'];
      };
    };
    responses: {
      /** @description The answer, or a graceful `degraded`. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ThinkResult'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['SessionNow'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionAmbiguous'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  deleteSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The session is gone; what became of its worktree. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionDeletion'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionAmbiguous'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getSessionOutput: {
    parameters: {
      query?: {
        /**
         * @description The `next` of an earlier answer; 0 starts at the oldest line kept.
         * @example 20480
         */
        after?: number;
        /**
         * @description Maximum number of lines.
         * @example 100
         */
        limit?: number;
      };
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The lines, and the position of the next one. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionOutput'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionAmbiguous'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getSessionScreen: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The screen. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionScreen'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionState'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getSessionDiff: {
    parameters: {
      query?: {
        /**
         * @description Branch, tag or commit to compare with. Default: the branch that the worktree was made
         *     from, or the default branch of the repository.
         * @example main
         */
        base?: components['schemas']['GitRevision'];
      };
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The difference. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionDiff'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['WorkspaceConflict'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  sendToSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SendRequest'];
      };
    };
    responses: {
      200: components['responses']['SessionNow'];
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionState'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  waitForSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['WaitRequest'];
      };
    };
    responses: {
      /** @description The session as it is then. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionWait'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionAmbiguous'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getSessionSummary: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The summary. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionSummary'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionAmbiguous'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  stopSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['SessionNow'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionAmbiguous'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  serveSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The server. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionServer'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionState'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  restartSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['SessionNow'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['RestartConflict'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  commitSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        'application/json': components['schemas']['CommitRequest'];
      };
    };
    responses: {
      /** @description The commit. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionCommit'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['CommitConflict'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  pushSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        'application/json': components['schemas']['PushRequest'];
      };
    };
    responses: {
      /** @description What was pushed. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionPush'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['WorkspaceConflict'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  openPullRequest: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        'application/json': components['schemas']['OpenPrRequest'];
      };
    };
    responses: {
      /** @description The pull request. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionPullRequest'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['PullRequestConflict'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  mergeSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        'application/json': components['schemas']['MergeRequest'];
      };
    };
    responses: {
      /** @description What the base is now. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionMerge'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['MergeConflict'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  rebaseSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        'application/json': components['schemas']['RebaseRequest'];
      };
    };
    responses: {
      /** @description What the branch is now. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SessionRebase'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['RebaseConflict'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  setForceCompact: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The session's id, its name, or the first characters of its id (at least 6). A name means the
         *     live session that has it, or else the ended one. More than one match is 409
         *     SESSION_AMBIGUOUS.
         * @example 01K9ZQ4M7T3V8X2B6C0D5E1F9G
         */
        id: components['parameters']['SessionId'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SetForceCompactRequest'];
      };
    };
    responses: {
      /** @description The override and what it comes to. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ForceCompactState'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionAmbiguous'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  streamEvents: {
    parameters: {
      query?: {
        /**
         * @description The same as the header, for a client that cannot set one on its first request. The header wins.
         * @example 18244
         */
        last_event_id?: string;
      };
      header?: {
        /**
         * @description The id of the last event received; the stream goes on after it.
         * @example 18244
         */
        'Last-Event-ID'?: components['parameters']['LastEventId'];
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
          'text/event-stream': components['schemas']['EventStream'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getPipeline: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The pipeline's id.
         * @example 01K9ZR0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PipelineId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['PipelineNow'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['PipelineNotFound'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  startPipeline: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The pipeline's id.
         * @example 01K9ZR0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PipelineId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['PipelineNow'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['PipelineNotFound'];
      409: components['responses']['PipelineState'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  cancelPipeline: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The pipeline's id.
         * @example 01K9ZR0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PipelineId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['PipelineNow'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['PipelineNotFound'];
      409: components['responses']['PipelineState'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  listPlans: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The plans. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['PlanList'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  createPlan: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['PlanDefinition'];
        'application/yaml': components['schemas']['PlanDefinition'];
      };
    };
    responses: {
      /** @description The plan, running. */
      201: {
        headers: {
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Plan'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getPlan: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The plan's id.
         * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PlanId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['PlanNow'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['PlanNotFound'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  cancelPlan: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The plan's id.
         * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PlanId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['PlanNow'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['PlanNotFound'];
      409: components['responses']['PlanState'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  pickSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The plan's id.
         * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PlanId'];
        /**
         * @description The key of the task in its plan.
         * @example upload
         */
        key: components['parameters']['PlanTaskKey'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['PickRequest'];
      };
    };
    responses: {
      200: components['responses']['PlanNow'];
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['PlanNotFound'];
      409: components['responses']['PlanState'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  claimPlanTask: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The plan's id.
         * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PlanId'];
        /**
         * @description The key of the task in its plan.
         * @example upload
         */
        key: components['parameters']['PlanTaskKey'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ClaimTaskRequest'];
      };
    };
    responses: {
      200: components['responses']['PlanNow'];
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['PlanNotFound'];
      409: components['responses']['PlanState'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  completePlanTask: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The plan's id.
         * @example 01K9ZV0B1C2D3E4F5G6H7J8K9M
         */
        id: components['parameters']['PlanId'];
        /**
         * @description The key of the task in its plan.
         * @example upload
         */
        key: components['parameters']['PlanTaskKey'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['CompleteTaskRequest'];
      };
    };
    responses: {
      200: components['responses']['PlanNow'];
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['PlanNotFound'];
      409: components['responses']['PlanState'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  listReadyTasks: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The tasks. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ReadyTaskList'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  receiveQueueTask: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The task's id, as signed. Missing is 401 BAD_SIGNATURE.
         * @example 01K9ZT6A8B0C2D4E6F8G1H3J5K
         */
        'webhook-id'?: string;
        /**
         * @description Unix seconds at signing; more than 5 minutes off, or missing, is 401 BAD_SIGNATURE.
         * @example 1768469400
         */
        'webhook-timestamp'?: string;
        /**
         * @description One or more `v1,` signatures, separated by spaces; one must verify, else 401 BAD_SIGNATURE.
         * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
         */
        'webhook-signature'?: string;
        /**
         * @description The queue the task comes from. Missing is 400.
         * @example agents
         */
        'X-Queue-Name'?: string;
        /**
         * @description The task's id; must equal `webhook-id`, else 400.
         * @example 01K9ZT6A8B0C2D4E6F8G1H3J5K
         */
        'X-Queue-Task-Id'?: string;
        /**
         * @description Needed to complete the task later. Missing is 400.
         * @example 7.4d1f0c
         */
        'X-Queue-Lease-Token'?: string;
        /**
         * @description The handler the task names.
         * @example agent/review
         */
        'X-Queue-Handler-Ref'?: string;
        /**
         * @description Which attempt this is, from 1.
         * @example 1
         */
        'X-Queue-Attempt'?: string;
        /**
         * @description How many attempts the task has.
         * @example 15
         */
        'X-Queue-Max-Attempts'?: string;
        /**
         * @description How often the task was redriven.
         * @example 0
         */
        'X-Queue-Redrive-Count'?: string;
        /**
         * @description When the queue stops waiting for this answer, RFC 3339.
         * @example 2026-01-15T09:30:30.000Z
         */
        'X-Queue-Deadline'?: string;
        /**
         * @description W3C trace context of the delivery.
         * @example 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
         */
        traceparent?: string;
      };
      path?: never;
      cookie?: never;
    };
    /** @description The bytes that were signed. An empty payload is 400. */
    requestBody?: {
      content: {
        '*/*': components['schemas']['QueueTaskPayload'];
      };
    };
    responses: {
      /** @description The session has started; the task is completed later. */
      202: {
        headers: {
          /**
           * @description Always `true`. Tells the queue that the answer comes later.
           * @example true
           */
          'X-Queue-Async': 'true';
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['QueueTaskAccepted'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['UnauthenticatedOrBadSignature'];
      403: components['responses']['ForbiddenOrDisabled'];
      404: components['responses']['BackendNotFound'];
      409: components['responses']['BackendNotEligible'];
      413: components['responses']['PayloadTooLarge'];
      429: components['responses']['TooManyAttemptsOrBudgetExceeded'];
      500: components['responses']['Internal'];
    };
  };
  listInbox: {
    parameters: {
      query?: {
        /**
         * @description `true` leaves out the notes that are read.
         * @example true
         */
        unread?: boolean;
        /**
         * @description Maximum number of notes.
         * @example 50
         */
        limit?: number;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The notes. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Inbox'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  markNoteRead: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The note's id.
         * @example 01K9ZS3M5N7P9Q1R2S4T6V8W0X
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The note, now read. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['InboxNote'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NoteNotFound'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  listQuestions: {
    parameters: {
      query?: {
        /**
         * @description Only questions of this status; absent means all.
         * @example open
         */
        status?: components['schemas']['QuestionStatus'];
        /**
         * @description Only questions of this session.
         * @example 01K9ZQ5A2N4P6R8S0T1V3W5X7Y
         */
        session_id?: string;
        /**
         * @description Maximum number of questions.
         * @example 50
         */
        limit?: number;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The questions. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['QuestionList'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  createQuestion: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['AskRequest'];
      };
    };
    responses: {
      /** @description The question, with the answer if it came in time. */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Question'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['SessionNotFound'];
      409: components['responses']['SessionState'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  waitForQuestion: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The question's id.
         * @example 01K9ZT4Q6R8S0T2V4W6X8Y0Z1A
         */
        id: components['parameters']['QuestionId'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['WaitRequest'];
      };
    };
    responses: {
      /** @description The question. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Question'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QuestionNotFound'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getQuestion: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The question's id.
         * @example 01K9ZT4Q6R8S0T2V4W6X8Y0Z1A
         */
        id: components['parameters']['QuestionId'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The question. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Question'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QuestionNotFound'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  answerQuestion: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The question's id.
         * @example 01K9ZT4Q6R8S0T2V4W6X8Y0Z1A
         */
        id: components['parameters']['QuestionId'];
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['AnswerRequest'];
      };
    };
    responses: {
      /** @description The question, now answered. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Question'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['QuestionNotFound'];
      409: components['responses']['AnswerConflict'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      422: components['responses']['UnknownOption'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  createLoginCode: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The code. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['LoginCode'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  logIn: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['LoginRequest'];
      };
    };
    responses: {
      /** @description Logged in; `Set-Cookie` carries the login. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['LoginState'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  logOut: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Logged out. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['LoginState'];
        };
      };
      403: components['responses']['Forbidden'];
      415: components['responses']['UnsupportedMediaType'];
      500: components['responses']['Internal'];
    };
  };
  getConfig: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The configuration, sorted by key. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ConfigView'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  updateConfig: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['UpdateConfigRequest'];
      };
    };
    responses: {
      /** @description The configuration as it is now, or would be with `validate_only`. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ConfigView'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      409: components['responses']['ConfigRefused'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getInsights: {
    parameters: {
      query?: {
        /**
         * @description Sessions created from here on. Absent means all time.
         * @example 30d
         */
        since?: components['schemas']['Since'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The insights. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Insights'];
        };
      };
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['ForbiddenOrDisabled'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getServers: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The servers. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ServerStates'];
        };
      };
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  readQueueServer: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
         * @example v1/admin/queues
         */
        path: components['parameters']['UpstreamPath'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Upstream'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotProxied'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
      502: components['responses']['UpstreamFailed'];
    };
  };
  putToQueueServer: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
         * @example v1/admin/queues
         */
        path: components['parameters']['UpstreamPath'];
      };
      cookie?: never;
    };
    /** @description What the upstream operation takes; it is sent on byte for byte. */
    requestBody?: {
      content: {
        'application/json': components['schemas']['UpstreamJson'];
      };
    };
    responses: {
      200: components['responses']['Upstream'];
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotProxied'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
      502: components['responses']['UpstreamFailed'];
    };
  };
  callQueueServer: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
         * @example v1/admin/queues
         */
        path: components['parameters']['UpstreamPath'];
      };
      cookie?: never;
    };
    /** @description What the upstream operation takes; it is sent on byte for byte. */
    requestBody?: {
      content: {
        'application/json': components['schemas']['UpstreamJson'];
      };
    };
    responses: {
      200: components['responses']['Upstream'];
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotProxied'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
      502: components['responses']['UpstreamFailed'];
    };
  };
  deleteFromQueueServer: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
         * @example v1/admin/queues
         */
        path: components['parameters']['UpstreamPath'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Upstream'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotProxied'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
      502: components['responses']['UpstreamFailed'];
    };
  };
  patchQueueServer: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
         * @example v1/admin/queues
         */
        path: components['parameters']['UpstreamPath'];
      };
      cookie?: never;
    };
    /** @description What the upstream operation takes; it is sent on byte for byte. */
    requestBody?: {
      content: {
        'application/json': components['schemas']['UpstreamJson'];
      };
    };
    responses: {
      200: components['responses']['Upstream'];
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotProxied'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
      502: components['responses']['UpstreamFailed'];
    };
  };
  readDatabase: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
         * @example v1/admin/queues
         */
        path: components['parameters']['UpstreamPath'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Upstream'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotProxied'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
      502: components['responses']['UpstreamFailed'];
    };
  };
  callDatabase: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
         * @example v1/admin/queues
         */
        path: components['parameters']['UpstreamPath'];
      };
      cookie?: never;
    };
    /** @description What the upstream operation takes; it is sent on byte for byte. */
    requestBody?: {
      content: {
        'application/json': components['schemas']['UpstreamJson'];
      };
    };
    responses: {
      200: components['responses']['Upstream'];
      400: components['responses']['InvalidRequest'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotProxied'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
      502: components['responses']['UpstreamFailed'];
    };
  };
  deleteFromDatabase: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The upstream path without its first slash. It goes to the end of the path, slashes, colons and percent signs included, and is passed on as it was sent.
         * @example v1/admin/queues
         */
        path: components['parameters']['UpstreamPath'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['Upstream'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotProxied'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
      502: components['responses']['UpstreamFailed'];
    };
  };
  postMcp: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The protocol version agreed at initialize.
         * @example 2025-06-18
         */
        'MCP-Protocol-Version'?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['McpPayload'];
      };
    };
    responses: {
      /** @description The reply, as one message or as a stream of messages. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['McpPayload'];
          'text/event-stream': components['schemas']['McpStream'];
        };
      };
      /** @description A notification or a response was accepted; there is no body. */
      202: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      400: components['responses']['McpInvalid'];
      401: components['responses']['Unauthenticated'];
      403: components['responses']['Forbidden'];
      406: components['responses']['McpNotAcceptable'];
      413: components['responses']['PayloadTooLarge'];
      415: components['responses']['UnsupportedMediaType'];
      429: components['responses']['TooManyAttempts'];
      500: components['responses']['Internal'];
    };
  };
  getDashboard: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The dashboard page. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'text/html': components['schemas']['HtmlPage'];
        };
      };
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      500: components['responses']['Internal'];
    };
  };
  getDashboardAsset: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The file's name.
         * @example index-4f2a9c.js
         */
        file: components['parameters']['AssetFile'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['StaticAsset'];
      403: components['responses']['Forbidden'];
      404: components['responses']['NotFound'];
      500: components['responses']['Internal'];
    };
  };
  getDocsAsset: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description The file's name.
         * @example index-4f2a9c.js
         */
        file: components['parameters']['AssetFile'];
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: components['responses']['StaticAsset'];
      403: components['responses']['ForbiddenOrDisabled'];
      404: components['responses']['NotFound'];
      500: components['responses']['Internal'];
    };
  };
  notify: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The alert's id, the same on every retry.
         * @example 01K9ZS3M5N7P9Q1R2S4T6V8W0X
         */
        'webhook-id': string;
        /**
         * @description Unix seconds at sending.
         * @example 1768469400
         */
        'webhook-timestamp': string;
        /**
         * @description One or more `v1,` signatures over id, timestamp and body.
         * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
         */
        'webhook-signature': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['WebhookNotification'];
      };
    };
    responses: {
      /** @description Received. */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Not received; it is sent again. */
      '4XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
}
