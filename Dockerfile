# The service for production. docs/operations.md, "Containers", says what is in the image.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
# By themselves: the packages change less often than the code.
COPY package.json package-lock.json ./
COPY client/package.json client/
RUN npm ci --ignore-scripts
COPY . .
# `dependencies` restores the link to Node, which npm may lose when it removes packages.
RUN npm run build && npm prune --omit=dev --ignore-scripts && npm run dependencies
# Over a third of the rest, which nothing runs: Node's headers, compiler and bundler (of tRPC and its document), copies that only
# bundlers read, tests, readmes and changelogs of packages, types, source maps, the command line of MikroORM (its configuration is not here).
RUN cd node_modules \
  && rm -rf node-linux-*/include node-linux-*/share typescript @typescript @rollup @mikro-orm/cli yargs yargs-parser \
    @opentelemetry/*/build/esm @opentelemetry/*/build/esnext */test @*/*/test \
  && find . -type f \( -regex '.*\.\([cm]?ts\|map\)' -o -iname 'readme*.md' -o -iname 'changelog*.md' -o -iname 'history.md' \) -delete \
  && find .bin -xtype l -delete

# Without a Node of its own: the image has the one that the lock file pins, which the tests have run on.
FROM debian:bookworm-slim
WORKDIR /app
# /data is for the embedded parts, which production has none of.
RUN install --directory --owner=10001 --group=10001 /app/.compiled /data
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/client/pages/dist client/pages/dist
COPY --from=build /app/entities entities
COPY --from=build /app/routers routers
COPY --from=build /app/server server
COPY --from=build /app/LICENSE /app/package.json ./
# MALLOC_… as in `npm start`.
ENV NODE_ENV=production \
    DATA_DIR=/data \
    PATH=/app/node_modules/.bin:/usr/local/bin:/usr/bin:/bin \
    NODE_COMPILE_CACHE=/app/.compiled \
    MALLOC_ARENA_MAX=2 \
    MALLOC_MMAP_THRESHOLD_=65536 \
    MALLOC_TRIM_THRESHOLD_=131072
# By its number, so that Kubernetes can tell that it is not root.
USER 10001:10001
# Compiled code for every start, as nothing is written later. Node keeps it by user and kind of processor, hence here.
RUN ["node", "--input-type=module", "--eval", "for (const module of ['./server/service.ts', './server/parts/key-value/redis.ts', './server/parts/mail/smtp.ts', 'ioredis', 'mysql2', '@mikro-orm/mysql', 'minio', 'nodemailer', 'openid-client', '@node-rs/argon2', '@node-rs/bcrypt', '@simplewebauthn/server', '@simplewebauthn/server/helpers', 'otpauth', 'uqr']) await import(module); process.exit()"]
EXPOSE 3000
# Whether the process works, not whether its parts do, which a restart would not help: that is /readyz.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["node", "--eval", "fetch('http://127.0.0.1:' + (process.env.PORT || 3000) + '/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node itself is the process that gets SIGTERM.
CMD ["node", "server/main.ts"]
