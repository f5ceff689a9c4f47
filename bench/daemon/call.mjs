/** Calls the REST API of a daemon; throws when it refuses. */
export async function callDaemon(url, method, path, body) {
  const headers = { 'content-type': 'application/json' };
  const sent = body && { headers, body: JSON.stringify(body) };
  const answer = await fetch(url + path, { method, ...sent });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}
