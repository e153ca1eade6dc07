import { z } from 'zod';

/** A smaller picture of an image: IMAGE_SIZES. */
export const variant = z.object({
  width: z.int(),
  height: z.int(),
  url: z.string(),
  bytes: z.int(),
});

/** A ThumbHash (evanw.github.io/thumbhash): a blurred picture to show until the image is loaded. */
export const placeholder = z
  .string()
  .max(40)
  .meta({ description: 'A ThumbHash in Base64, of at most 30 bytes', example: '3OcRJYB4d3h/iIeHeEh3eIhw+j3A' });
