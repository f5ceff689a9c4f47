import type { FastifyReply, FastifyRequest } from 'fastify';
import { validateHeaderValue } from 'node:http';
import { Readable } from 'node:stream';
import { messageOf } from '../errors.js';
import type { AppCore } from './app.js';
import type { AnswerHeaders, ContentAnswer, UntypedAnswer } from './handlers.js';
import { KeptJson } from './kept-json.js';

/** Sends what a handler answered. */
export function sendAnswer(
  app: AppCore,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: UntypedAnswer,
): void {
  // What can fail comes first: an error must not leave with the headers of an answer.
  const text = textOf(answer.body);
  if (answer.headers) setHeaders(reply, answer.headers);
  if (answer.content !== undefined) {
    sendContent(app, request, reply, answer.status, answer.contentType!, answer.content);
  } else if (text === undefined) {
    app.prepare(reply);
    reply.code(answer.status).send();
  } else {
    app.send(reply, answer.status, 'application/json', text);
  }
}

/** Undefined: there is no body. */
export function textOf(body: unknown): string | undefined {
  if (body instanceof KeptJson) return body.text;
  return body === undefined ? undefined : JSON.stringify(body);
}

function setHeaders(reply: FastifyReply, headers: AnswerHeaders): void {
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) validateHeaderValue(name, String(value));
  }
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) reply.header(name, String(value));
  }
}

function sendContent(
  app: AppCore,
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  contentType: string,
  content: ContentAnswer<number, string>['content'],
): void {
  if (typeof content === 'string') {
    app.send(reply, status, contentType, content);
    return;
  }
  app.prepare(reply);
  reply.code(status).header('content-type', contentType);
  if (content instanceof Uint8Array) {
    reply.send(Buffer.from(content.buffer, content.byteOffset, content.byteLength));
    return;
  }
  const stream = content instanceof Readable ? content : Readable.from(content);
  stream.on('error', (error) => {
    app.world.log.warn(
      { err: error, request_id: request.id },
      `a stream broke off: ${messageOf(error)}`,
    );
  });
  if (request.method === 'HEAD') {
    stream.destroy();
    reply.send();
  } else {
    reply.send(stream);
  }
}
