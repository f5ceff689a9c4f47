export type {
  CallAbortReasons,
  Method,
  Methods,
  ServerCall,
  SingleRequestMethod,
  RequestStreamMethod,
  RequestQueue,
} from './methods.js';
export {
  errorStatus,
  type GrpcCode,
  type GrpcStatus,
  type TransportFault,
} from '../base/messages.js';
export { GrpcTransport } from './transport.js';
