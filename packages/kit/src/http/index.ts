export { createApp } from './app.js';
export type { AppOptions, HttpApp } from './app.js';
export { bindOperations } from './bind.js';
export type { BoundApp } from './bind.js';
export { hasBody, mediaTypeOf } from './body.js';
export type { BodyParser } from './body.js';
export { contractDifferences } from './contract.js';
export type { ContractCheckOptions } from './contract.js';
export { operationsOf } from './document.js';
export type { OpenApiDocument, OperationDescription } from './document.js';
export { docsSite } from './docs-site.js';
export type { Asset, DocsSite, DocsSiteOptions } from './docs-site.js';
export { Dispatcher } from './dispatch.js';
export type { Endpoint, PathEntry, Steps } from './dispatch.js';
export { serveMetrics } from './metrics-page.js';
export { closeGracefully, drainHttp, serveUntilSignal } from './drain.js';
export type { DrainOptions, DrainStep, ServeOptions, SignalSource } from './drain.js';
export {
  ConnectionsExceeded,
  Exchange,
  headerList,
  MalformedRequest,
  PeerMemoryExceeded,
  peerMemoryRetryMs,
} from './exchange.js';
export { isBase64, isTimestamp } from './formats.js';
export { takenOver } from './handlers.js';
export type {
  HandlerResponse,
  Call,
  Handler,
  HandlerEntry,
  Handlers,
  StagedHandler,
} from './handlers.js';
export { HttpServer } from './http-server.js';
export type { HttpServerLimits } from './http-server.js';
export { isTooDeepJson, jsonErrorReason, maxJsonDepth, parseJson, wellFormed } from './json.js';
export { cacheJson } from './cached-json.js';
export { announce, listen, listenAt, listenError, urlOf } from './listen.js';
export type { Announcement, Listener, ListenOptions } from './listen.js';
export { onLoopback } from './loopback.js';
export type { BindOptions } from './options.js';
export { crossSiteHeader, shownHeader } from './same-site.js';
export type { SameSiteRules } from './same-site.js';
export { parameterReader } from './parameters.js';
export type { ParameterReader } from './parameters.js';
export { problemFrom, problemType } from './problem.js';
export type { HttpErrorCodes, Problem } from './problem.js';
export { PathRouter } from './router.js';
export { runServer, serverLog, whileStarting } from './run-server.js';
export type { RunningServer, RunOptions } from './run-server.js';
export { DocumentSchemas, schemaRef } from './schemas.js';
export type { Check, CheckOptions } from './schemas.js';
export { eventStream, eventText } from './sse.js';
export type { EventStreamOptions, ServerEvent } from './sse.js';
