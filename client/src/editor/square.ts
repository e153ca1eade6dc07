/** In pixels; of a picture as it is shown, upright. */
export interface Size {
  width: number;
  height: number;
}

/** A square part of a picture, in its pixels. */
export interface Square {
  x: number;
  y: number;
  side: number;
}

/** A point of a frame: 0 is its left or top, 1 its right or bottom. */
export interface Point {
  x: number;
  y: number;
}

export const MAX_ZOOM = 8;

const clamp = (value: number, least: number, most: number) => Math.min(Math.max(value, least), most);

const within = ({ width, height }: Size, { x, y, side }: Square): Square => ({
  x: clamp(x, 0, width - side),
  y: clamp(y, 0, height - side),
  side,
});

const widest = ({ width, height }: Size) => Math.min(width, height);

/** The largest square, at the centre: to it the service crops an avatar. */
export function centreOf(picture: Size): Square {
  const side = widest(picture);
  return { x: (picture.width - side) / 2, y: (picture.height - side) / 2, side };
}

export const isCentre = (picture: Size, { x, y, side }: Square): boolean => {
  const centre = centreOf(picture);
  return Math.max(Math.abs(x - centre.x), Math.abs(y - centre.y), Math.abs(side - centre.side)) < 1;
};

/** 1 for the largest square, up to MAX_ZOOM. */
export const zoomOf = (picture: Size, { side }: Square): number => widest(picture) / side;

/** The picture moves in the frame by these shares of it. */
export const moved = (picture: Size, { x, y, side }: Square, by: Point): Square =>
  within(picture, { x: x - by.x * side, y: y - by.y * side, side });

/** The picture grows by a factor; the point stays where it is in the frame. */
export function zoomed(picture: Size, { x, y, side }: Square, factor: number, at: Point): Square {
  const next = clamp(side / factor, widest(picture) / MAX_ZOOM, widest(picture));
  return within(picture, { x: x + at.x * (side - next), y: y + at.y * (side - next), side: next });
}
