import type { NextConfig } from 'next';

// `tsc -p .` checks the types.
export default { typescript: { ignoreBuildErrors: true } } satisfies NextConfig;
