import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Database } from '@millrace/engine';
import type { DashboardSite } from '../dashboard/site.js';
import type { Branches } from '../branches/branches.js';
import type { Events } from '../events/events.js';
import type { Insights } from '../insights/insights.js';
import type { Metrics } from '../metrics/metrics.js';
import type { DaemonSeries } from '../metrics/prometheus.js';
import type { Notify } from '../notify/notify.js';
import type { Pipelines } from '../pipelines/pipelines.js';
import type { Plans } from '../plans/plans.js';
import type { Backends } from '../registry/backends.js';
import type { Upstreams } from '../proxy/upstream.js';
import type { QueueTasks } from '../queue-callback/index.js';
import type { Questions } from '../questions/questions.js';
import type { Savings } from '../savings/savings.js';
import type { Sessions } from '../sessions/port.js';
import type { Spend } from '../spend/spend.js';
import type { Thinker } from '../think/thinker.js';
import type { Usage } from '../usage/usage.js';
import type { Workbench } from '../workbench/workbench.js';

/** Services that operations use. Operations do not depend on HTTP, MCP or the terminal. */
export interface DaemonContext {
  /** The daemon's own database, to back it up. */
  database: Pick<Database, 'backupBytes'>;
  backends: Backends;
  sessions: Sessions;
  pipelines: Pick<Pipelines, 'list' | 'get' | 'create' | 'start' | 'cancel'>;
  plans: Pick<
    Plans,
    'list' | 'get' | 'create' | 'cancel' | 'pick' | 'ready' | 'claim' | 'complete'
  >;
  events: Pick<Events, 'follow'>;
  queueTasks: Pick<QueueTasks, 'receive'>;
  questions: Pick<Questions, 'list' | 'get' | 'answer' | 'add' | 'askingSessions' | 'ended'>;
  notify: Pick<Notify, 'list' | 'markRead'>;
  metrics: Pick<Metrics, 'read' | 'history'>;
  branches: Pick<Branches, 'list' | 'refresh' | 'merged'>;
  workbench: Workbench;
  /** tokens.force_compact: default for agents without an override. */
  forceCompact: () => boolean;
  thinker: Thinker;
  usage: Pick<Usage, 'read'>;
  savings: Pick<Savings, 'report'>;
  /** Undefined when the setting `savings` is off. */
  spend: Pick<Spend, 'read' | 'blocks' | 'progress'> | undefined;
  /** For Prometheus. */
  series: Pick<DaemonSeries, 'text' | 'contentType'>;
  /** Undefined when the setting `insights` is off. */
  insights: Pick<Insights, 'read'> | undefined;
  settings: {
    view(): DaemonSchema<'ConfigView'>;
    /** `by` is named in the log. */
    update(
      request: DaemonSchema<'UpdateConfigRequest'>,
      by: string,
    ): Promise<DaemonSchema<'ConfigView'>>;
  };
  dashboard: Pick<DashboardSite, 'page' | 'asset'>;
  /** The queue server and the database, for the dashboard. */
  upstreams: Upstreams;
}
