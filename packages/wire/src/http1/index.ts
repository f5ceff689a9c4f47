export { dialTarget, systemConnect, type Connect, type DialTools } from './dial.js';
export { Failure } from '../base/socket.js';
export type { PoolLimits } from './connection-pools.js';
export { createOutbound, type OutboundOptions } from './outbound.js';
