export { classifyAddress, type AddressClass } from './address.js';
export {
  parseAllowlist,
  readAllowlist,
  type Allowlist,
  type AllowlistEntry,
  type Match,
} from './allowlist.js';
export type { Connect } from './dial.js';
export type { LaneLimits } from './lanes.js';
export {
  callbackGuard,
  createOutbound,
  webhookGuard,
  type Guard,
  type Outbound,
  type OutboundOptions,
  type OutboundRequest,
} from './outbound.js';
export type { FailureType, OutboundFailure, OutboundOutcome, OutboundResponse } from './outcome.js';
export { callbackPolicy, webhookPolicy, type AddressPolicy } from './policy.js';
export { systemResolver, type Resolver } from './resolve.js';
export { parseTarget, type Target, type TargetResult } from './target.js';
