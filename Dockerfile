# The service for production. docs/operations.md, "Containers", says what is in the image.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
# A layer of their own: the packages change less often than the code.
COPY package.json package-lock.json ./
COPY client/package.json client/
COPY scripts/no-telemetry/package.json scripts/no-telemetry/
RUN npm ci --ignore-scripts
COPY . .
# npm may remove the link to Node with the development packages; `dependencies` restores it.
RUN npm run build && npm prune --omit=dev --ignore-scripts && npm run dependencies
# Removes files that nothing runs, over a third of the packages: Node's headers, compiler and bundler (of trpc-to-openapi), copies for
# bundlers, tests, readmes, changelogs, types, source maps, MikroORM's command line.
RUN cd node_modules \
  && rm -rf node-linux-*/include node-linux-*/share typescript @typescript @rollup @mikro-orm/cli yargs yargs-parser \
    @opentelemetry/*/build/esm @opentelemetry/*/build/esnext */test @*/*/test \
  && find . -type f \( -regex '.*\.\([cm]?ts\|map\)' -o -iname 'readme*.md' -o -iname 'changelog*.md' -o -iname 'history.md' \) -delete \
  && find .bin -xtype l -delete

# A base image without Node: the lock file pins the Node of the image, the one that the tests ran on.
FROM debian:bookworm-slim
WORKDIR /app
# /data is for embedded parts, which do not exist in production.
RUN install --directory --owner=10001 --group=10001 /app/.compiled /data
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/client/pages/dist client/pages/dist
COPY --from=build /app/entities entities
COPY --from=build /app/routers routers
COPY --from=build /app/server server
COPY --from=build /app/LICENSE /app/package.json ./
# MALLOC_…: saves 14 MB in an idle process, 53 MB after images (docs/performance.md).
ENV NODE_ENV=production \
    DATA_DIR=/data \
    PATH=/app/node_modules/.bin:/usr/local/bin:/usr/bin:/bin \
    NODE_COMPILE_CACHE=/app/.compiled \
    MALLOC_ARENA_MAX=2 \
    MALLOC_MMAP_THRESHOLD_=65536 \
    MALLOC_TRIM_THRESHOLD_=131072
# The commit for /api/health: docker build --build-arg COMMIT=$(git rev-parse HEAD)
ARG COMMIT=
LABEL org.opencontainers.image.revision=$COMMIT
RUN printf '%s' "$COMMIT" > .commit
# A numeric user, so that Kubernetes can verify that it is not root.
USER 10001:10001
# Fills the compile cache for every start: the file system may be read-only later. Its key includes user and processor, hence here.
RUN ["node", "--input-type=module", "--eval", "for (const module of ['./server/service.ts', './server/parts/key-value/redis.ts', './server/parts/mail/smtp.ts', 'ioredis', 'mysql2', '@mikro-orm/mysql', 'minio', 'nodemailer', 'openid-client', '@node-rs/argon2', '@node-rs/bcrypt', '@simplewebauthn/server', '@simplewebauthn/server/helpers', 'otpauth', 'uqr']) await import(module); process.exit()"]
EXPOSE 3000
# Checks the process only: a restart would not repair a dependency. /readyz checks those.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["node", "--eval", "const { HOST = '', PORT } = process.env; const host = ['', '0.0.0.0', '::'].includes(HOST) ? '127.0.0.1' : HOST.includes(':') ? '[' + HOST + ']' : HOST; fetch('http://' + host + ':' + (PORT || 3000) + '/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node itself receives SIGTERM, without a shell. --max-semi-space-size: saves 60 MB under load (docs/performance.md).
CMD ["node", "--max-semi-space-size=32", "server/main.ts"]
