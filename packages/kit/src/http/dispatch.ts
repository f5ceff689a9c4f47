import type { FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../errors.js';
import { AnswerCheck } from './answer-check.js';
import { sendAnswer } from './answer.js';
import type { AppCore } from './app.js';
import { hasBody, jsonParser, mediaTypeOf } from './body.js';
import type { SecureParse } from './body.js';
import { allowOf, boundOperation, operationFor } from './bound.js';
import type { PathEntry } from './bound.js';
import { LiveCall } from './call.js';
import { perform } from './perform.js';
import type { OperationDescription } from './document.js';
import type { UntypedOptions } from './options.js';
import { PathRouter } from './router.js';
import type { DocumentSchemas } from './schemas.js';

type Params = Readonly<Record<string, string>>;

/**
 * Walks a request through the checks in the order that the contract promises: 401, then 404 or
 * 405, then 403, 413, 415, a malformed body, bad query, headers and path, and last what the
 * handler decides.
 */
export class Dispatcher {
  readonly #app: AppCore;
  readonly #options: UntypedOptions;
  readonly router = new PathRouter<PathEntry>();
  readonly answers: AnswerCheck | undefined;

  constructor(
    app: AppCore,
    operations: readonly OperationDescription[],
    schemas: DocumentSchemas,
    options: UntypedOptions,
  ) {
    this.#app = app;
    this.#options = options;
    const { onUndocumentedAnswer: report } = options;
    this.answers = report ? new AnswerCheck(schemas, report) : undefined;
    this.#bindAll(operations, schemas);
  }

  #bindAll(operations: readonly OperationDescription[], schemas: DocumentSchemas): void {
    const app = this.#app;
    const json = jsonParser(app.fastify.getDefaultJsonParser('error', 'error') as SecureParse);
    const parsers = { 'application/json': json, ...this.#options.bodyParsers };
    const parts = { schemas, glueCodes: app.glueCodes, parsers, options: this.#options };
    const entries = new Map<string, PathEntry>();
    for (const operation of operations) {
      let entry = entries.get(operation.path);
      if (!entry) {
        entry = { methods: new Map(), allow: '', isPublic: true };
        entries.set(operation.path, entry);
        const rest = operation.parameters.find(({ takesRest }) => takesRest);
        this.router.add(operation.path, entry, rest?.name);
      }
      entry.methods.set(operation.method, boundOperation(operation, parts));
      entry.isPublic &&= operation.isPublic;
    }
    for (const entry of entries.values()) entry.allow = allowOf(entry);
  }

  /** Finds the operation and the caller, before anything tells whether the path exists. */
  identify(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const { exchange } = request;
    if (!this.#isAdmitted(request, reply)) return;
    const path = pathOf(request.raw.url!);
    const match = this.router.find(path);
    let needsToken: boolean;
    if (match) {
      const bound = operationFor(match.leaf, request.method);
      exchange.match = match;
      exchange.operation = bound?.operation;
      needsToken = !(bound ? bound.operation.isPublic : match.leaf.isPublic);
    } else {
      needsToken = this.#isProtected(path);
    }
    if (needsToken) {
      this.#authenticate(request, reply, done);
    } else {
      exchange.principal = this.#options.anonymous;
      done();
    }
  }

  #isAdmitted(request: FastifyRequest, reply: FastifyReply): boolean {
    try {
      this.#options.admit?.(request);
      return true;
    } catch (error) {
      this.#app.fail(error, request, reply);
      return false;
    }
  }

  #isProtected(path: string): boolean {
    return this.#options.protectedPrefixes.some(
      (prefix) => path === prefix || path.startsWith(`${prefix}/`),
    );
  }

  #authenticate(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const accept = (principal: unknown) => {
      request.exchange.principal = principal;
      request.exchange.principalName = this.#options.principalName?.(principal);
      done();
    };
    const refuse = (error: unknown) => this.#app.fail(error, request, reply);
    try {
      const principal = this.#options.authenticate(request);
      if (principal instanceof Promise) principal.then(accept).catch(refuse);
      else accept(principal);
    } catch (error) {
      refuse(error);
    }
  }

  dispatch(request: FastifyRequest, reply: FastifyReply): void {
    const { match } = request.exchange;
    const bound = match && operationFor(match.leaf, request.method);
    if (match && bound) {
      this.#admit(new LiveCall(this.#app, bound, request, reply), match.params);
    } else if (match) {
      const path = pathOf(request.raw.url!);
      const detail = `${path} takes ${match.leaf.allow}, not ${request.method}.`;
      const headers = { allow: match.leaf.allow };
      const refusal = new Refusal(this.#app.glueCodes.methodNotAllowed, detail, { headers });
      this.#app.fail(refusal, request, reply);
    } else {
      this.#refuseUnknown(request, reply);
    }
  }

  /** A path that cannot be decoded names nothing, but who asks is found out first as ever. */
  refuseUnreadable(request: FastifyRequest, reply: FastifyReply): void {
    this.identify(request, reply, () => this.#refuseUnknown(request, reply));
  }

  #refuseUnknown(request: FastifyRequest, reply: FastifyReply): void {
    const path = pathOf(request.raw.url!);
    const bare = path.slice(0, -1);
    const isMeant = path.endsWith('/') && this.router.find(bare) !== undefined;
    const hint = isMeant ? ` Without the slash at the end there is: ${bare}.` : '';
    const detail = `There is no route ${path}.${hint}`;
    this.#app.fail(new Refusal(this.#app.glueCodes.notFound, detail), request, reply);
  }

  #admit(call: LiveCall, params: Params): void {
    const { operation, principal } = call;
    try {
      const allowed = operation.isPublic
        ? undefined
        : this.#options.authorize?.(principal, operation, params);
      if (allowed instanceof Promise) {
        allowed
          .then(() => this.#receive(call, params))
          .catch((error: unknown) => this.#fail(call, error));
      } else {
        this.#receive(call, params);
      }
    } catch (error) {
      this.#fail(call, error);
    }
  }

  #receive(call: LiveCall, params: Params): void {
    const { body } = call.bound;
    if (body)
      return body.receive(call.request.raw, (bytes) => void this.#serve(call, params, bytes));
    this.#refuseForeignBody(call);
    void this.#serve(call, params, undefined);
  }

  /**
   * A page of another site can send a form or plain text without being asked whether it may. So
   * where the contract has a code for it, such a body is refused, although nobody would read it.
   */
  #refuseForeignBody({ operation, request: { raw } }: LiveCall): void {
    const { unsupportedMediaType: code } = this.#app.glueCodes;
    if (!hasBody(raw) || !operation.codes.includes(code)) return;
    const given = raw.headers['content-type'];
    if (mediaTypeOf(given) === 'application/json') return;
    const found = given === undefined ? 'no Content-Type' : `Content-Type ${given}`;
    throw new Refusal(code, `The request has a body and ${found}: send application/json, or none.`);
  }

  async #serve(call: LiveCall, params: Params, bytes: Buffer | undefined): Promise<void> {
    const { bound, request } = call;
    try {
      const { headers } = request.raw;
      const given = { params, query: request.query as Params, headers, bytes };
      // Waiting costs a turn of the microtask queue, which a handler that is not async can spare.
      const outcome = perform(bound, call, given);
      const answer = outcome instanceof Promise ? await outcome : outcome;
      if ('takenOver' in answer) return;
      this.answers?.seeAnswer(bound.operation, answer);
      sendAnswer(this.#app, request, call.reply, answer);
    } catch (error) {
      this.#fail(call, error);
    }
  }

  #fail(call: LiveCall, error: unknown): void {
    const problem = this.#app.fail(error, call.request, call.reply);
    if (problem) this.answers?.seeProblem(call.operation, problem.body, problem.code);
  }
}

/** The path as it was sent; a request may carry it as a whole URL (RFC 9112, 3.2.2). */
export function pathOf(target: string): string {
  let end = target.length;
  for (const mark of ['?', '#']) {
    const at = target.indexOf(mark);
    if (at !== -1 && at < end) end = at;
  }
  const path = target.slice(0, end);
  return path.startsWith('/') ? path : path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '') || '/';
}
