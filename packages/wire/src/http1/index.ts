export type { Connect } from './dial.js';
export type { PoolLimits } from './connection-pools.js';
export { createOutbound, type OutboundOptions } from './outbound.js';
