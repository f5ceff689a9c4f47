import { daemonCodes } from '@millrace/contract/daemon';
import { failWith } from '@millrace/kit/errors';

/** A refusal of the daemon: `throw fail('BACKEND_NOT_FOUND', '...')`. */
export const fail = failWith(daemonCodes);
