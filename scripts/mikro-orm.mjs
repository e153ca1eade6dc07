// `npm run mikro-orm`: MikroORM's command line with our configuration. Its option --config would take the command as a second file.
process.env.MIKRO_ORM_CLI_CONFIG ??= './mikro-orm.config.ts';
await import('../node_modules/@mikro-orm/cli/cli.js');
