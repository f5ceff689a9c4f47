import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export interface Asset {
  readonly contentType: string;
  readonly bytes: Buffer;
}

const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Millrace database</title>
    <link rel="icon" type="image/png" href="/docs/favicon-32x32.png" />
    <link rel="stylesheet" href="/docs/swagger-ui.css" />
  </head>
  <body>
    <div id="docs"></div>
    <noscript>This page needs JavaScript; <a href="/openapi.yaml">the description itself</a> does not.</noscript>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`;

const startScript = `SwaggerUIBundle({
  url: '/openapi.yaml',
  dom_id: '#docs',
  deepLinking: true,
  validatorUrl: null,
  // The description names the usual address; what is tried out here is tried on this server.
  requestInterceptor: (request) => {
    const { pathname, search } = new URL(request.url, location.href);
    request.url = location.origin + pathname + search;
    return request;
  },
  presets: [SwaggerUIBundle.presets.apis],
});
`;

/** Nothing from elsewhere: the page works without a network, and nothing can be put into it. */
export const docsPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const text = (contentType: string, content: string): Asset => ({
  contentType,
  bytes: Buffer.from(content),
});

const bundled: Readonly<Record<string, string>> = {
  '/docs/swagger-ui.css': 'text/css; charset=utf-8',
  '/docs/swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  '/docs/favicon-32x32.png': 'image/png',
};

const kept = new Map<string, Asset>([
  ['/docs', text('text/html; charset=utf-8', page)],
  ['/docs/start.js', text('text/javascript; charset=utf-8', startScript)],
]);

/** A file of the documentation page, read once. */
export function docsAsset(path: string): Asset | undefined {
  const known = kept.get(path);
  if (known) return known;
  const contentType = Object.hasOwn(bundled, path) ? bundled[path] : undefined;
  if (contentType === undefined) return undefined;
  const home = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  const asset = { contentType, bytes: readFileSync(join(home, path.slice('/docs/'.length))) };
  kept.set(path, asset);
  return asset;
}
