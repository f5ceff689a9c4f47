import fastify from 'fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { METHODS } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Refusal } from '../errors.js';
import type { CodeTable } from '../errors.js';
import type { Metrics } from '../metrics.js';
import type { World } from '../world.js';
import { discardRest, hasBody } from './body.js';
import { answerClientError } from './client-error.js';
import { Ledger } from './exchange.js';
import { bareProblem, defaultGlueCodes, problemFrom } from './problem.js';
import type { GlueCodes, Problem, ProblemOptions } from './problem.js';

export interface AppOptions {
  world: World;
  /** What each code of the server means over HTTP. */
  codes: CodeTable;
  metrics?: Metrics;
  /** The codes of refusals that this layer makes, where they differ from the usual names. */
  glueCodes?: Partial<GlueCodes>;
  /** What an error of the layers below means to a caller; undefined: what it says itself. */
  translateError?: (error: unknown) => unknown;
  /** Last word on the shape of a problem document. */
  shapeProblem?: (problem: Problem) => object;
  /** Operations whose requests are counted but not logged: health checks. */
  quietOperations?: readonly string[];
  /** Logs reads that went well at the level debug: for a server that pages ask all the time. */
  quietReads?: boolean;
  /** The time a client has to send its whole request. */
  requestTimeoutMs?: number;
  keepAliveTimeoutMs?: number;
}

/** A Fastify server with Millrace's error answers, request ids, access log and metrics. */
export interface HttpApp {
  readonly fastify: FastifyInstance;
  /** Aborted when the server starts to drain. */
  readonly ending: AbortSignal;
  /** Every route that was added, as Fastify spells it. */
  readonly routes: readonly { method: string; url: string }[];
  /** From now on every answer closes its connection, and open-ended streams are told to end. */
  beginDrain(): void;
}

type Take = (request: FastifyRequest, reply: FastifyReply) => void;

export interface SentProblem {
  body: object;
  code: string | undefined;
}

interface ShapedProblem extends SentProblem {
  status: number;
  headers: Readonly<Record<string, string>>;
}

export const problemMediaType = 'application/problem+json';

/** What the operations are bound to: an app, and the ways to answer on it. */
export class AppCore implements HttpApp {
  readonly fastify: FastifyInstance;
  readonly world: World;
  readonly glueCodes: GlueCodes;
  readonly routes: { method: string; url: string }[] = [];
  /** Takes requests that no route of Fastify matches. */
  routeMissing: Take = (request, reply) => this.#refuseUnknown(request, reply);
  /** Takes requests whose path cannot be decoded; they reach no route and no hook. */
  pathUnreadable: Take = (request, reply) => this.#refuseUnknown(request, reply);
  readonly ledger: Ledger;
  readonly #options: AppOptions;
  readonly #ending = new AbortController();

  constructor(options: AppOptions) {
    const { world, metrics, quietOperations, quietReads = false } = options;
    this.#options = options;
    this.world = world;
    this.glueCodes = { ...defaultGlueCodes, ...options.glueCodes };
    checkGlueCodes(this.glueCodes, options.codes);
    this.ledger = new Ledger({
      clock: world.clock,
      log: world.log,
      metrics,
      quietOperations: new Set(quietOperations),
      quietReads,
    });
    const requestId = (headers: IncomingHttpHeaders) => this.requestId(headers);
    this.fastify = newFastify(options, requestId, (request, reply) => {
      this.ledger.open(request, reply);
      this.pathUnreadable(request, reply);
    });
    this.fastify.decorateRequest('exchange');
    this.fastify.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) this.routes.push({ method: one, url });
    });
    this.fastify.addHook('onRequest', (request, reply, done) => {
      this.ledger.open(request, reply);
      done();
    });
    this.fastify.setErrorHandler((error, request, reply) => {
      this.fail(error, request, reply);
    });
    this.fastify.setNotFoundHandler((request, reply) => this.routeMissing(request, reply));
  }

  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  beginDrain(): void {
    this.#ending.abort(new Error('The server is shutting down'));
  }

  /** To be called on every reply before it is sent. */
  prepare(reply: FastifyReply): void {
    const { raw } = reply.request;
    if (!raw.complete && hasBody(raw)) discardRest(raw, reply.raw, leftoverLimitBytes);
    else if (this.#ending.signal.aborted) reply.header('connection', 'close');
  }

  /** Sends a text as it is: Fastify would add a charset to JSON types, which have none. */
  send(reply: FastifyReply, status: number, contentType: string, text: string): void {
    this.prepare(reply);
    reply.code(status).header('content-type', contentType).serializer(asIs).send(text);
  }

  /** Answers with the problem that the error stands for, and returns what it said. */
  fail(error: unknown, request: FastifyRequest, reply: FastifyReply): SentProblem | undefined {
    const { log } = this.world;
    if (reply.sent) {
      log.error(
        { err: error, request_id: request.id },
        'a request failed after its answer had begun',
      );
      if (!reply.raw.writableEnded) reply.raw.destroy();
      return undefined;
    }
    try {
      const { status, headers, body, code } = this.problemOf(error, request.id);
      reply.headers(headers);
      this.send(reply, status, problemMediaType, JSON.stringify(body));
      return { body, code };
    } catch (bug) {
      log.error({ err: bug, request_id: request.id }, 'a problem could not be sent');
      reply.raw.destroy();
      return undefined;
    }
  }

  /** What the caller is told of an error; the log is told what is ours. */
  problemOf(error: unknown, requestId: string): ShapedProblem {
    const { log } = this.world;
    const { codes, shapeProblem, translateError } = this.#options;
    const meant = translateError?.(error) ?? error;
    const notes = { err: meant, request_id: requestId };
    const options = { codes, glueCodes: this.glueCodes };
    const { problem, headers, isBug } = problemFor(meant, requestId, options);
    if (isBug) log.error(notes, 'a request met a bug');
    else if (problem.status >= 500) log.warn(notes, 'a request could not be served');
    const body = shapeProblem?.(problem) ?? problem;
    return { status: problem.status, headers, body, code: problem.code };
  }

  /** The id that the client gave its request, or a new one. */
  requestId({ 'x-request-id': given }: IncomingHttpHeaders): string {
    const { clock, random } = this.world;
    return typeof given === 'string' && sane.test(given) ? given : random.ulid(clock.now());
  }

  #refuseUnknown(request: FastifyRequest, reply: FastifyReply): void {
    const refusal = new Refusal(this.glueCodes.notFound, 'There is nothing at this path.');
    this.fail(refusal, request, reply);
  }
}

/** An app without a document, for a listener of its own such as the one of the metrics. */
export function createApp(options: AppOptions): HttpApp {
  return new AppCore(options);
}

// What a client that was answered early may still send before its connection is cut.
const leftoverLimitBytes = 67_108_864;

export const usualKeepAliveMs = 72_000;

const sane = /^[A-Za-z0-9._~:-]{1,128}$/;

function newFastify(
  options: AppOptions,
  requestId: (headers: IncomingHttpHeaders) => string,
  onUnreadablePath: (request: FastifyRequest, reply: FastifyReply) => void,
): FastifyInstance {
  const { log } = options.world;
  const shapeProblem = options.shapeProblem ?? ((problem: Problem) => problem);
  const instance = fastify({
    logger: false,
    // The contract's schemas are checked by the glue; Fastify would load two compilers for none.
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
    genReqId: (raw: IncomingMessage) => requestId(raw.headers),
    requestTimeout: options.requestTimeoutMs ?? 120_000,
    keepAliveTimeout: options.keepAliveTimeoutMs ?? usualKeepAliveMs,
    return503OnClosing: false,
    frameworkErrors: (_error, request, reply) => onUnreadablePath(request, reply),
    clientErrorHandler: (error, socket) => {
      const id = requestId({});
      const status = answerClientError(error, socket, id, shapeProblem);
      if (status) log.info({ request_id: id, status, reason: error.code }, 'bad request');
    },
  });
  // Bodies are read by the operation itself: Fastify would answer 415 before 413, and cut the
  // connection of a client that is still sending.
  for (const method of instance.supportedMethods) {
    if (!METHODS.includes(method)) continue;
    instance.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
  return instance;
}

/** Fastify's own errors carry a status; whatever is not the caller's fault is a bug. */
function problemFor(error: unknown, requestId: string, options: ProblemOptions) {
  const status = (error as { statusCode?: unknown } | null)?.statusCode;
  if (error instanceof Error && !(error instanceof Refusal) && isClientStatus(status)) {
    return { problem: bareProblem(status, error.message, requestId), headers: {}, isBug: false };
  }
  return problemFrom(error, requestId, options);
}

function isClientStatus(status: unknown): status is number {
  return typeof status === 'number' && status >= 400 && status < 500;
}

function checkGlueCodes(glueCodes: GlueCodes, codes: CodeTable): void {
  for (const code of Object.values(glueCodes)) {
    if (!Object.hasOwn(codes, code)) {
      throw new Error(`The table of codes lacks ${code}; add it or name another by glueCodes`);
    }
  }
}

function unused(): never {
  throw new Error('No route has a schema of its own');
}

const asIs = (payload: unknown) => payload as string;
