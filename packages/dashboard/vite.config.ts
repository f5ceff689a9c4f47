import react from '@vitejs/plugin-react';
import { defaultClientConditions, defineConfig } from 'vite';

export default defineConfig({
  plugins: [react()],
  // Bundle the workspace packages from their sources, so that they need no build first.
  resolve: { conditions: ['millrace-source', ...defaultClientConditions] },
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
