import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: 'dist/site',
    // The daemon serves these files under one flat path and keeps them for good by their names.
    assetsDir: 'assets',
    // Nothing inline: the page's policy forbids it.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    reportCompressedSize: false,
    // How long a build takes on a busy machine is no warning.
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
});
