export { classifyAddress, type AddressClass } from './address.js';
export {
  parseAllowlist,
  readAllowlist,
  type Allowlist,
  type AllowlistEntry,
  type Match,
} from './allowlist.js';
export { callbackGuard, webhookGuard, type Guard } from './guard.js';
export { RequestAbort } from './port.js';
export type {
  FailureType,
  Outbound,
  OutboundFailure,
  OutboundOutcome,
  OutboundRequest,
  OutboundResponse,
  RequestSignal,
} from './port.js';
export { callbackPolicy, webhookPolicy, type AddressPolicy } from './policy.js';
export { sharedLookups, systemResolver, type Resolver } from './resolve.js';
export { parseGrpcTarget, parseTarget, type Target, type TargetResult } from './target.js';
