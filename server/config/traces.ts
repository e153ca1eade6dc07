import { z } from 'zod';
import { baseAddress } from './values.ts';

/** OpenTelemetry's SDK reads these variables itself; they are only validated here. See `tracesOf`. */
export const traceVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: baseAddress().optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: z.enum(['http/protobuf', 'http/json']).default('http/protobuf'),
  OTEL_EXPORTER_OTLP_HEADERS: z.string().optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_TRACES_SAMPLER: z
    .enum([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ])
    .optional(),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .regex(/^(?:0(?:\.\d+)?|1(?:\.0+)?)$/, 'must be between 0 and 1')
    .optional(),
};

/** Undefined: no traces. `share` is the part of new traces that is recorded; undefined if the SDK's sampler decides. */
export function tracesOf(env: z.output<z.ZodObject<typeof traceVariables>>) {
  if (env.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined;
  const share =
    env.OTEL_TRACES_SAMPLER === 'parentbased_traceidratio' ? Number(env.OTEL_TRACES_SAMPLER_ARG ?? 1) : undefined;
  return { protocol: env.OTEL_EXPORTER_OTLP_PROTOCOL, share };
}
