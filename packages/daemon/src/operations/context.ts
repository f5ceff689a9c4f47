import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Backends } from '../registry/backends.js';
import type { Savings } from '../savings/savings.js';
import type { Spend } from '../spend/spend.js';
import type { Thinker } from '../think/thinker.js';
import type { Usage } from '../usage/index.js';

/** What the operations work with. They know no HTTP, no terminal and no MCP. */
export interface DaemonContext {
  backends: Backends;
  thinker: Thinker;
  usage: Pick<Usage, 'read'>;
  savings: Pick<Savings, 'report'>;
  /** Undefined when the setting `savings` is off. */
  spend: Pick<Spend, 'read'> | undefined;
  /** Undefined when the setting `insights` is off. */
  insights: Pick<Spend, 'insights'> | undefined;
  config: () => DaemonSchema<'ConfigView'>;
}
