// Shows the course of some days as a small line.

const width = 240;
const height = 56;
/** Room for the stroke. */
const edge = 2;

/** A line without axes that shows the course of some days. Its figures are beside it. */
export function Spark({ values, label }: { values: readonly number[]; label: string }) {
  const most = Math.max(1, ...values);
  const x = (place: number) => edge + (place / Math.max(1, values.length - 1)) * (width - 2 * edge);
  const y = (value: number) => height - edge - (value / most) * (height - 2 * edge);
  const points = values.map((value, place) => `${x(place).toFixed(1)},${y(value).toFixed(1)}`);
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <line x1={0} x2={width} y1={height - 1} y2={height - 1} />
      {points.length > 0 && (
        <>
          <path
            class="spark-area"
            d={`M${x(0)},${height - 1}L${points.join("L")}L${x(values.length - 1)},${height - 1}Z`}
          />
          <polyline points={points.join(" ")} />
        </>
      )}
    </svg>
  );
}
