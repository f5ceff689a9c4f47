export type { Connect } from './dial.js';
export type { LaneLimits } from './lanes.js';
export { createOutbound, type OutboundOptions } from './outbound.js';
