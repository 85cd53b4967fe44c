"""Forward and backward compatibility of operator schemas, and the two-week window, as verdicts."""
