/** Server-sent events of the model APIs. */

export function openStream(response) {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
  });
}

export function sendEvent(response, data, event) {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  response.write(`${event ? `event: ${event}\n` : ''}data: ${text}\n\n`);
}

/** Ends the connection without ending the answer. */
export function cutStream(response) {
  response.write(':\n\n', () => response.destroy());
}

/** Text in a few pieces, as a model streams it. */
export function piecesOf(text) {
  return text.match(/[\s\S]{1,24}/g) ?? [''];
}

let count = 0;

/** An id that is unique within the run. */
export function nextId(prefix) {
  count += 1;
  return `${prefix}_${String(count).padStart(8, '0')}`;
}
