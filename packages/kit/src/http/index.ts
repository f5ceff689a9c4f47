export { createApp, type AppOptions, type HttpApp, metricsApp, serveMetrics } from './app.js';
export { bindOperations, type BoundApp } from './operations.js';
export {
  hasBody,
  mediaTypeOf,
  type BodyParser,
  isTooDeepJson,
  jsonErrorReason,
  maxJsonDepth,
  parseJson,
  wellFormed,
} from './body.js';
export { operationsOf } from './document.js';
export type { OpenApiDocument, OperationDescription } from './document.js';
export { docsSite } from './docs-site.js';
export type { Asset, DocsSite, DocsSiteOptions } from './docs-site.js';
export { Dispatcher, type Endpoint, type PathEntry, type Steps, PathRouter } from './dispatch.js';
export {
  closeGracefully,
  drainHttp,
  serveUntilSignal,
  type DrainOptions,
  type DrainStep,
  type ServeOptions,
  type SignalSource,
  runServer,
  serverLog,
  whileStarting,
  type RunningServer,
  type RunOptions,
} from './run-server.js';
export {
  ConnectionsExceeded,
  Exchange,
  headerList,
  MalformedRequest,
  PeerMemoryExceeded,
  peerMemoryRetryMs,
} from './exchange.js';
export { isTimestamp } from '../base/units.js';
export {
  isBase64,
  DocumentSchemas,
  schemasOf,
  schemaRef,
  type Check,
  type CheckOptions,
} from './schemas.js';
export {
  answering,
  ok,
  takenOver,
  type HandlerResponse,
  type Call,
  type Handler,
  type Handlers,
  cacheJson,
  type BindOptions,
} from './handlers.js';
export { HttpServer, type HttpServerLimits } from './http-server.js';
export { announce, listen, listenAt, listenError, urlOf } from './listen.js';
export type { Announcement, Listener, ListenOptions } from './listen.js';
export { crossSiteHeader, shownHeader } from './same-site.js';
export type { SameSiteRules } from './same-site.js';
export { parameterReader } from './parameters.js';
export type { ParameterReader } from './parameters.js';
export { problemFrom, problemType } from './problem.js';
export type { HttpErrorCodes, Problem } from './problem.js';
export { eventStream, eventText } from './sse.js';
export type { EventStreamOptions, ServerEvent } from './sse.js';
