export { classifyAddress, type AddressClass } from './address.js';
export {
  parseAllowlist,
  readAllowlist,
  type Allowlist,
  type AllowlistEntry,
  type Match,
  callbackGuard,
  webhookGuard,
  type Guard,
  callbackPolicy,
  webhookPolicy,
  type AddressPolicy,
} from './allowlist.js';
export { connectionHeaders, namedByConnection, RequestAbort } from './port.js';
export type {
  FailureType,
  Outbound,
  OutboundFailure,
  OutboundOutcome,
  OutboundRequest,
  OutboundResponse,
  RequestSignal,
} from './port.js';
export {
  sharedLookups,
  systemResolver,
  type Resolver,
  parseGrpcTarget,
  parseTarget,
  type Target,
  type TargetResult,
} from './target.js';
