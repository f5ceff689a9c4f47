import { readFileSync } from 'node:fs';

/** A static file. */
export interface Asset {
  readonly contentType: string;
  readonly bytes: Buffer;
}

export interface DocsSiteOptions {
  title: string;
  /** The path of the OpenAPI document. */
  document: string;
  /** The path prefix of the page's files, without a trailing slash. */
  assets: string;
}

/** The interactive documentation of a server, self-contained. */
export interface DocsSite {
  readonly page: Asset;
  /** A file of the page by name, read once; undefined when it does not exist. */
  asset(name: string): Asset | undefined;
  /** Headers for the page and its files. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Files of Swagger UI, which the build copies here. */
const home = new URL('../../dist/assets/swagger-ui/', import.meta.url);
const bundled: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

/** Only own resources: the page works offline, and nothing can be injected. */
const policy = [
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

export function docsSite(options: DocsSiteOptions): DocsSite {
  const cached = new Map<string, Asset>([
    ['start.js', text('text/javascript; charset=utf-8', startScript(options))],
  ]);
  return {
    page: text('text/html; charset=utf-8', pageOf(options)),
    headers: { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' },
    asset(name) {
      const known = cached.get(name);
      if (known) return known;
      const contentType = Object.hasOwn(bundled, name) ? bundled[name] : undefined;
      if (contentType === undefined) return undefined;
      const asset = { contentType, bytes: readFileSync(new URL(name, home)) };
      cached.set(name, asset);
      return asset;
    },
  };
}

function text(contentType: string, content: string): Asset {
  return { contentType, bytes: Buffer.from(content) };
}

const pageOf = ({ title, document, assets }: DocsSiteOptions) => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${title}</title>
    <link rel="icon" type="image/png" href="${assets}/favicon-32x32.png" />
    <link rel="stylesheet" href="${assets}/swagger-ui.css" />
  </head>
  <body>
    <div id="docs"></div>
    <noscript>This page needs JavaScript. You can read the <a href="${document}">OpenAPI document</a> without it.</noscript>
    <script src="${assets}/swagger-ui-bundle.js"></script>
    <script src="${assets}/start.js"></script>
  </body>
</html>
`;

const startScript = ({ document }: DocsSiteOptions) => `SwaggerUIBundle({
  url: '${document}',
  dom_id: '#docs',
  deepLinking: true,
  validatorUrl: null,
  // The document has a default server URL; requests from this page go to this server.
  requestInterceptor: (request) => {
    const { pathname, search } = new URL(request.url, location.href);
    request.url = location.origin + pathname + search;
    return request;
  },
  presets: [SwaggerUIBundle.presets.apis],
});
`;
