import react from '@vitejs/plugin-react';
import { defaultClientConditions, defineConfig, type Plugin } from 'vite';
import { docSections } from './scripts/docs.mjs';

/** `virtual:docs`: the address of what the page Documentation shows, a file of its own. */
const docs: Plugin = {
  name: 'docs',
  resolveId: (id) => (id === 'virtual:docs' ? '\0docs' : undefined),
  load(id) {
    if (id !== '\0docs') return undefined;
    const source = JSON.stringify(docSections());
    if (this.meta.watchMode)
      return `export default ${JSON.stringify(`data:,${encodeURIComponent(source)}`)}`;
    const file = this.emitFile({ type: 'asset', name: 'docs.json', source });
    return `export default import.meta.ROLLUP_FILE_URL_${file}`;
  },
};

export default defineConfig({
  plugins: [react(), docs],
  // Bundle the workspace packages from their sources, so that they need no build first.
  resolve: { conditions: ['millrace-source', ...defaultClientConditions] },
  // `npx vite packages/dashboard` shows the sources beside the daemon of `ctl up`.
  server: { proxy: { '/api': 'http://127.0.0.1:8765' } },
  build: {
    outDir: 'dist/site',
    // The daemon serves one flat folder; names carry a hash, so browsers may cache them forever.
    assetsDir: 'assets',
    // The Content-Security-Policy of the page forbids inline content.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    reportCompressedSize: false,
    // Build times on a busy machine are not worth a warning.
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
});
